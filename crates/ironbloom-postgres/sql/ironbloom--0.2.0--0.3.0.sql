-- complain if the script is run by psql instead of ALTER EXTENSION
\echo Use "ALTER EXTENSION ironbloom UPDATE" to load this file. \quit

-- From 0.2.0 to 0.3.0. A new installation runs the script of 0.2.0 and then this one, so both ways end alike.

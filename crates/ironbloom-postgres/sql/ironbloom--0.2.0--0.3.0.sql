-- complain if the script is run by psql instead of ALTER EXTENSION
\echo Use "ALTER EXTENSION ironbloom UPDATE" to load this file. \quit

-- From 0.2.0 to 0.3.0. A new installation runs the script of 0.2.0 and then this one, so both ways end alike.

-- The rest of the types that the server itself can hash.

CREATE OPERATOR FAMILY xid_ops USING ironbloom;
CREATE OPERATOR CLASS xid_ops DEFAULT FOR TYPE xid USING ironbloom FAMILY xid_ops AS
    OPERATOR 1 = (xid, xid),
    OPERATOR 1 = (xid, int4),
    FUNCTION 1 hashint4extended(int4, int8),
    FUNCTION 1 (int4, int4) hashint4extended(int4, int8),
    FUNCTION 2 (xid, xid) ironbloom_options(internal);
CREATE OPERATOR CLASS xid8_ops DEFAULT FOR TYPE xid8 USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashint8extended(int8, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS cid_ops DEFAULT FOR TYPE cid USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashint4extended(int4, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS aclitem_ops DEFAULT FOR TYPE aclitem USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hash_aclitem_extended(aclitem, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS oidvector_ops DEFAULT FOR TYPE oidvector USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashoidvectorextended(oidvector, int8), FUNCTION 2 ironbloom_options(internal);

-- A check that also asks the index as queries do.

CREATE FUNCTION ironbloom_check(index regclass, deep boolean) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION ironbloom_check(regclass, boolean) IS 'the same; if it is to be deep, it asks for values of all columns by every operator, too';
REVOKE EXECUTE ON FUNCTION ironbloom_check(regclass, boolean) FROM PUBLIC;

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

-- What a database administrator wants to see of all indexes.

CREATE FUNCTION ironbloom_status(index regclass,
    OUT heap_pages bigint, OUT index_pages bigint, OUT tail_pages bigint, OUT pending_rows bigint, OUT segments int, OUT free_pages bigint, OUT advice text)
    RETURNS SETOF record ROWS 1
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION ironbloom_status IS 'what an ironbloom index consists of, and what to do about it; errors are advice, too, and that it is locked';

-- Of those tables that the user may read; monitors see all. Temporary tables of other sessions cannot be read.
CREATE VIEW ironbloom_indexes AS
    SELECT i.indexrelid::regclass AS index, i.indrelid::regclass AS "table", p.inhparent::regclass AS part_of,
        s.index_pages * current_setting('block_size')::bigint AS bytes, s.heap_pages * current_setting('block_size')::bigint AS table_bytes,
        s.segments, s.tail_pages, s.pending_rows, s.free_pages, s.advice
    FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i' AND NOT pg_is_other_temp_schema(c.relnamespace)
        JOIN pg_am a ON a.oid = c.relam
        JOIN pg_proc h ON h.oid = a.amhandler AND h.prosrc = 'ironbloom_handler'
        LEFT JOIN pg_inherits p ON p.inhrelid = i.indexrelid
        CROSS JOIN LATERAL ironbloom_status(i.indexrelid) s
    WHERE has_table_privilege(i.indrelid, 'SELECT') OR pg_has_role('pg_stat_scan_tables', 'USAGE');
COMMENT ON VIEW ironbloom_indexes IS 'all ironbloom indexes, also those of partitions, with advice where something is to be done';
GRANT SELECT ON ironbloom_indexes TO PUBLIC;

CREATE FUNCTION ironbloom_verify(index regclass, deep boolean DEFAULT false, OUT cells bigint, OUT problem text)
    RETURNS SETOF record ROWS 1
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION ironbloom_verify IS 'ironbloom_check, with what is wrong as a result instead of an error: for checking many indexes';
REVOKE EXECUTE ON FUNCTION ironbloom_verify FROM PUBLIC;

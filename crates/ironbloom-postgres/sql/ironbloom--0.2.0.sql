-- complain if the script is run by psql instead of CREATE EXTENSION
\echo Use "CREATE EXTENSION ironbloom" to load this file. \quit

-- The access method.

CREATE FUNCTION ironbloom_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C;

CREATE ACCESS METHOD ironbloom TYPE INDEX HANDLER ironbloom_handler;
COMMENT ON ACCESS METHOD ironbloom IS 'one small index for any columns';

CREATE FUNCTION ironbloom_options(internal) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

-- Operator classes. Function 1 is the hash function of the server's own hash indexes. Types that can be compared with
-- each other are in one family.

CREATE OPERATOR FAMILY integer_ops USING ironbloom;
CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE int2 USING ironbloom FAMILY integer_ops AS
    OPERATOR 1 = (int2, int2),
    OPERATOR 1 = (int2, int4),
    OPERATOR 1 = (int2, int8),
    FUNCTION 1 hashint2extended(int2, int8),
    FUNCTION 2 (int2, int2) ironbloom_options(internal);
CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE int4 USING ironbloom FAMILY integer_ops AS
    OPERATOR 1 = (int4, int4),
    OPERATOR 1 = (int4, int2),
    OPERATOR 1 = (int4, int8),
    FUNCTION 1 hashint4extended(int4, int8),
    FUNCTION 2 (int4, int4) ironbloom_options(internal);
CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE int8 USING ironbloom FAMILY integer_ops AS
    OPERATOR 1 = (int8, int8),
    OPERATOR 1 = (int8, int2),
    OPERATOR 1 = (int8, int4),
    FUNCTION 1 hashint8extended(int8, int8),
    FUNCTION 2 (int8, int8) ironbloom_options(internal);

CREATE OPERATOR FAMILY float_ops USING ironbloom;
CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE float4 USING ironbloom FAMILY float_ops AS
    OPERATOR 1 = (float4, float4),
    OPERATOR 1 = (float4, float8),
    FUNCTION 1 hashfloat4extended(float4, int8),
    FUNCTION 2 (float4, float4) ironbloom_options(internal);
CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE float8 USING ironbloom FAMILY float_ops AS
    OPERATOR 1 = (float8, float8),
    OPERATOR 1 = (float8, float4),
    FUNCTION 1 hashfloat8extended(float8, int8),
    FUNCTION 2 (float8, float8) ironbloom_options(internal);

CREATE OPERATOR FAMILY text_ops USING ironbloom;
CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING ironbloom FAMILY text_ops AS
    OPERATOR 1 = (text, text),
    OPERATOR 1 = (text, name),
    FUNCTION 1 hashtextextended(text, int8),
    FUNCTION 2 (text, text) ironbloom_options(internal);
CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name USING ironbloom FAMILY text_ops AS
    OPERATOR 1 = (name, name),
    OPERATOR 1 = (name, text),
    FUNCTION 1 hashnameextended(name, int8),
    FUNCTION 2 (name, name) ironbloom_options(internal);

CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashbpcharextended(bpchar, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE bool USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashcharextended("char", int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS char_ops DEFAULT FOR TYPE "char" USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashcharextended("char", int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashoidextended(oid, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hash_numeric_extended(numeric, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashvarlenaextended(internal, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 uuid_hash_extended(uuid, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashint4extended(int4, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 time_hash_extended(time, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 timetz_hash_extended(timetz, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 timestamp_hash_extended(timestamp, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 timestamp_hash_extended(timestamp, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 interval_hash_extended(interval, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashinetextended(inet, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashmacaddrextended(macaddr, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8 USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashmacaddr8extended(macaddr8, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS pg_lsn_ops DEFAULT FOR TYPE pg_lsn USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 pg_lsn_hash_extended(pg_lsn, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS tid_ops DEFAULT FOR TYPE tid USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashtidextended(tid, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS enum_ops DEFAULT FOR TYPE anyenum USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hashenumextended(anyenum, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS array_ops DEFAULT FOR TYPE anyarray USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hash_array_extended(anyarray, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS range_ops DEFAULT FOR TYPE anyrange USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 hash_range_extended(anyrange, int8), FUNCTION 2 ironbloom_options(internal);
CREATE OPERATOR CLASS jsonb_ops DEFAULT FOR TYPE jsonb USING ironbloom AS
    OPERATOR 1 =, FUNCTION 1 jsonb_hash_extended(jsonb, int8), FUNCTION 2 ironbloom_options(internal);

-- From version 14 on the server can hash these, too.
DO $$
BEGIN
    IF current_setting('server_version_num')::int >= 140000 THEN
        EXECUTE 'CREATE OPERATOR CLASS record_ops DEFAULT FOR TYPE record USING ironbloom AS
            OPERATOR 1 =, FUNCTION 1 hash_record_extended(record, int8), FUNCTION 2 ironbloom_options(internal)';
        EXECUTE 'CREATE OPERATOR CLASS multirange_ops DEFAULT FOR TYPE anymultirange USING ironbloom AS
            OPERATOR 1 =, FUNCTION 1 hash_multirange_extended(anymultirange, int8), FUNCTION 2 ironbloom_options(internal)';
    END IF;
END
$$;

-- A look inside.

CREATE FUNCTION ironbloom_info(index regclass,
    OUT version int, OUT rows bigint, OUT heap_pages bigint, OUT sealed_pages bigint, OUT tail_pages bigint, OUT pending_rows bigint,
    OUT segments int, OUT cells bigint, OUT index_pages bigint, OUT free_pages bigint)
    RETURNS SETOF record ROWS 1
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION ironbloom_info IS 'what an ironbloom index consists of';

CREATE FUNCTION ironbloom_columns(index regclass,
    OUT number int, OUT name text, OUT selectivity int, OUT buckets bigint, OUT cells bigint, OUT pages bigint,
    OUT bits_per_cell float8)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION ironbloom_columns IS 'the columns of an ironbloom index and what they take';

CREATE FUNCTION ironbloom_segments(index regclass,
    OUT id bigint, OUT first_heap_page bigint, OUT heap_pages bigint, OUT cells bigint, OUT pages bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION ironbloom_segments IS 'the segments of an ironbloom index';

CREATE FUNCTION ironbloom_check(index regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION ironbloom_check IS 'checks all pages of an ironbloom index and compares it with its table; returns the cells compared';
REVOKE EXECUTE ON FUNCTION ironbloom_check FROM PUBLIC;

CREATE FUNCTION ironbloom_seal(index regclass) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION ironbloom_seal IS 'seals the tail of an ironbloom index and merges its segments, as VACUUM does';

-- Filters, as the bytes of .ibf files.

CREATE FUNCTION ironbloom_build_step(internal, text, bigint, float8) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE;
CREATE FUNCTION ironbloom_build_final(internal) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE;
CREATE AGGREGATE ironbloom_build(key text, capacity bigint, rate float8) (
    SFUNC = ironbloom_build_step,
    STYPE = internal,
    FINALFUNC = ironbloom_build_final
);
COMMENT ON AGGREGATE ironbloom_build(text, bigint, float8) IS 'a Bloom filter of all keys, as the bytes of an .ibf file';

CREATE FUNCTION ironbloom_contains(filter bytea, key text) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION ironbloom_contains IS 'whether a filter may have a key; false is certain';

//! `amvalidate`: whether an operator class can work, with all that is wrong about it.

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;

use super::deep::rows;
use crate::hashing::HASH_PROC;
use crate::owner::AsOwner;

/// What is wrong with the family of a class, in words. A hash function takes values of its type, or of one that they are without a
/// conversion; or the server's own hash index uses it for that type.
fn problems(class: pg_sys::Oid) -> String {
    format!(
        "with class as (select opcfamily, opcintype from pg_opclass where oid = {class}),
         operators as (select amopopr, amoplefttype, amoprighttype, amopstrategy, amoppurpose from pg_amop, class where amopfamily = opcfamily),
         functions as (select p.*, f.proargtypes, f.prorettype, f.pronargs from pg_amproc p
             join pg_proc f on f.oid = p.amproc, class where amprocfamily = opcfamily)
         select format('operator %s is not boolean, or not number 1, or for ordering', amopopr::regoperator) from operators
             where amopstrategy <> 1 or amoppurpose <> 's' or 'bool'::regtype <> (select oprresult from pg_operator where oid = amopopr)
         union all
         select format('function %s should take a value of type %s and a bigint, and return a bigint', amproc::regprocedure, format_type(amproclefttype, -1))
             from functions f where amprocnum = {HASH_PROC} and not (amproclefttype = amprocrighttype and pronargs = 2
                 and prorettype = 'int8'::regtype and proargtypes[1] = 'int8'::regtype and (proargtypes[0] = amproclefttype
                     or exists (select from pg_cast where castsource = amproclefttype and casttarget = proargtypes[0] and castmethod = 'b' and castcontext = 'i')
                     or exists (select from pg_amproc h join pg_opfamily o on o.oid = h.amprocfamily
                         join pg_am a on a.oid = o.opfmethod and a.amname = 'hash'
                         where h.amproc = f.amproc and h.amproclefttype = f.amproclefttype)))
         union all
         select format('operator %s has no hash function for type %s', amopopr::regoperator, format_type(kind, -1))
             from operators, unnest(array[amoplefttype, amoprighttype]) kind
             where not exists (select from functions where amprocnum = {HASH_PROC} and amproclefttype = kind and amprocrighttype = kind)
         union all
         select format('type %s has no operator', format_type(opcintype, -1)) from class
             where not exists (select from operators where amoplefttype = opcintype and amoprighttype = opcintype)
         union all
         select format('type %s has no hash function', format_type(opcintype, -1)) from class
             where not exists (select from functions where amprocnum = {HASH_PROC} and amproclefttype = opcintype and amprocrighttype = opcintype)"
    )
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn validate(class: pg_sys::Oid) -> bool {
    let safe = AsOwner::nobody_else();
    // SAFETY: inside a statement, whose snapshot the query uses.
    let problems = unsafe {
        pg_sys::SPI_connect();
        let problems = rows(&problems(class));
        pg_sys::SPI_finish();
        problems
    };
    drop(safe);
    for problem in problems.iter().flatten().flatten() {
        pg_sys::ereport!(
            INFO,
            PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
            format!("operator class {class} of access method ironbloom: {problem}")
        );
    }
    problems.is_empty()
}

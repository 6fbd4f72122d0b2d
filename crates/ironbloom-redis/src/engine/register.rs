//! Commands, their flags and their handlers; and the function that a server calls to load the module.

use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::api::{self, Api, Ctx, ERR, Handler, Info, OK, Str, api};
use super::call::Call;
use super::describe::{self, Docs};
use super::{allocator, config, value};
use crate::commands::{COMMANDS, compact, merge, sketches};
use crate::native::Native;
use crate::native::bloom::NativeBloom;
use crate::native::cuckoo::NativeCuckoo;
use crate::redisbloom::chain::Chain;
use crate::redisbloom::cuckoo::CuckooFilter;
use crate::sketches::{CountMin, TDigest, TopK};
use crate::stats;

/// The module's name and version in MODULE LIST; the name is also the prefix of its settings and INFO fields.
pub(super) struct Identity {
    name: &'static CStr,
    version: c_int,
}

/// Its own name and version.
pub(super) const OWN: Identity = Identity { name: c"ironbloom", version: 100 };

/// RedisBloom's name, which some clients and tools look for before they send its commands, and the version that this module
/// answers like: 8.0.0.
pub(super) const REDISBLOOM: Identity = Identity { name: c"bf", version: 80_000 };

const API_VERSION: c_int = 1;

/// What a client is told when the module has a bug.
pub(super) const INTERNAL_ERROR: &CStr = c"ERR internal error of the module ironbloom";

/// What the module declares that it can do. Options that are missing here are not for it: docs/redis.md has all of them.
mod options {
    use std::ffi::c_int;

    /// We handle read errors ourselves; without this option the server exits at a short file.
    pub(super) const HANDLE_IO_ERRORS: c_int = 1 << 0;

    /// A replica may answer from its old data while it loads the new: values know nothing of each other, and jobs know theirs
    /// by an id that nothing loaded has.
    pub(super) const HANDLE_REPL_ASYNC_LOAD: c_int = 1 << 2;

    /// Keys may be loaded while their slot still belongs to another server: they come as commands, of which those that only
    /// servers send are accepted ([`Call::must_obey`](super::Call::must_obey)), and they wait for none of ours.
    pub(super) const HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

    /// The bits that a server knows: the last one has a meaning in Valkey only.
    pub(super) fn of(is_valkey: bool) -> c_int {
        let common = HANDLE_IO_ERRORS | HANDLE_REPL_ASYNC_LOAD;
        if is_valkey { common | HANDLE_ATOMIC_SLOT_MIGRATION } else { common }
    }
}

/// A command as the server knows it.
pub(crate) struct Command {
    /// In lower case, as RedisBloom's.
    pub(crate) name: &'static CStr,
    /// The server's flags.
    pub(crate) flags: &'static CStr,
    /// The category of all commands of its family.
    pub(crate) family: &'static CStr,
    /// The server's categories. Servers do not derive them from the flags of a module's commands.
    pub(crate) categories: &'static CStr,
    /// The function that runs it.
    pub(crate) handler: RawHandler,
    /// The last argument that is a key, or -1 if all are; the first is 1.
    pub(crate) last_key: c_int,
    /// Its documentation.
    pub(crate) docs: Docs,
}

/// A handler as the server calls it; made by [`handler`].
#[derive(Clone, Copy)]
pub(crate) struct RawHandler(Handler);

/// A handler that runs this function.
pub(crate) const fn handler<F: Fn(&Call<'_>) + Copy + 'static>(_run: F) -> RawHandler {
    const { assert!(size_of::<F>() == 0, "a function, not a closure with something in it") };
    RawHandler(run::<F>)
}

unsafe extern "C" fn run<F: Fn(&Call<'_>) + Copy + 'static>(
    ctx: Ctx,
    args: *mut Str,
    count: c_int,
) -> c_int {
    // SAFETY: `handler` was given a value of this type, which has no bytes: any address is one of it.
    let run = unsafe { NonNull::<F>::dangling().as_ref() };
    // SAFETY: the arguments of a handler, used until it returns.
    let call = unsafe { Call::new(ctx, args, count) };
    // A panic must not reach the server. Nothing is left half changed that could do harm: filters are changed in steps
    // that cannot panic half way.
    if catch_unwind(AssertUnwindSafe(|| run(&call))).is_err() {
        call.reply_error(INTERNAL_ERROR);
    }
    OK
}

/// The function that a server calls to load the module.
///
/// # Safety
///
/// Only a server calls it, with a context and the arguments of the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut c_void,
    args: *mut *mut c_void,
    count: c_int,
) -> c_int {
    let (ctx, args): (Ctx, *mut Str) = (ctx.cast(), args.cast());
    // SAFETY: the context of loading.
    let Some(api) = (unsafe { api::find_all(ctx) }) else { return ERR };
    // SAFETY: the context of loading, and arguments that live as long.
    let is_loaded = catch_unwind(|| unsafe { load(api, ctx, args, count) }).unwrap_or(false);
    if is_loaded { OK } else { ERR }
}

unsafe fn load(api: &Api, ctx: Ctx, args: *mut Str, count: c_int) -> bool {
    // SAFETY: the context of loading, and text that the server copies.
    unsafe {
        let args = Call::new(ctx, args, count);
        let Identity { name, version } = match config::identity(&args) {
            Ok(identity) => identity,
            Err(error) => return refuse(ctx, &error.to_string()),
        };
        if (api.is_module_name_busy)(name.as_ptr()) != 0 {
            let name = name.to_string_lossy();
            return refuse(ctx, &format!("a module of the name {name} is loaded already"));
        }
        (api.set_module_attribs)(ctx, name.as_ptr(), version, API_VERSION);
        (api.set_module_options)(ctx, options::of(api.is_valkey));
        // What filters take must be in the server's accounts.
        ironbloom::memory::take_all_from_allocator();
        let are_own_free = value::register::<Native<NativeBloom>>(ctx)
            && value::register::<Native<NativeCuckoo>>(ctx);
        if !are_own_free {
            return refuse(
                ctx,
                "the data types ironbloom and ironcucko are taken by another module",
            );
        }
        if !value::register::<Chain>(ctx) || !value::register::<CuckooFilter>(ctx) {
            return refuse(
                ctx,
                "the data types MBbloom-- and MBbloomCF are taken: RedisBloom is loaded. Its filters and commands \
                 are also this module's, so a server can have one of the two",
            );
        }
        let are_sketches_free = value::register::<CountMin>(ctx)
            && value::register::<TopK>(ctx)
            && value::register::<TDigest>(ctx);
        if !are_sketches_free {
            return refuse(
                ctx,
                "the data types CMSk-TYPE, TopK-TYPE and TDIS-TYPE are taken by another module",
            );
        }
        add_categories(api, ctx);
        for command in COMMANDS.iter().chain(sketches::COMMANDS) {
            if !register(api, ctx, command) {
                return refuse(ctx, "a command of RedisBloom is taken: another module has it");
            }
        }
        if let Some(register_info_func) = api.register_info_func {
            register_info_func(ctx, info);
        }
        if let Err(error) = config::register(api, ctx) {
            return refuse(ctx, &error.to_string());
        }
        if let Err(error) = config::load_arguments(&args) {
            return refuse(ctx, &error.to_string());
        }
    }
    true
}

/// Logs why the module is not loaded.
///
/// # Safety
///
/// `ctx` is the context of loading.
unsafe fn refuse(ctx: Ctx, text: &str) -> bool {
    // SAFETY: the context of loading.
    unsafe { warn(ctx, text) };
    false
}

/// # Safety
///
/// `ctx` is the context of loading.
unsafe fn warn(ctx: Ctx, text: &str) {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: the context of loading; the format takes one string.
    unsafe { (api().log)(ctx, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr()) };
}

/// # Safety
///
/// `ctx` is the context of loading.
unsafe fn add_categories(api: &Api, ctx: Ctx) {
    if let Some(add_acl_category) = api.add_acl_category {
        for name in [c"bloom", c"cuckoo"].iter().chain(sketches::FAMILIES) {
            // SAFETY: the context of loading; the server copies the name. It refuses names that it has, which is fine.
            unsafe { add_acl_category(ctx, name.as_ptr()) };
        }
    }
}

/// # Safety
///
/// `ctx` is the context of loading.
unsafe fn register(api: &Api, ctx: Ctx, command: &Command) -> bool {
    let (name, flags) = (command.name.as_ptr(), command.flags.as_ptr());
    // SAFETY: the context of loading; the server copies name and flags.
    unsafe {
        if (api.create_command)(ctx, name, command.handler.0, flags, 1, command.last_key, 1) != OK {
            return false;
        }
        let Some(get_command) = api.get_command else { return true };
        let created = get_command(ctx, name);
        if created.is_null() {
            return false;
        }
        if let Some(set_categories) = api.set_command_acl_categories {
            let all = [command.categories.to_bytes(), b" ", command.family.to_bytes()].concat();
            let all = CString::new(all).unwrap_or_default();
            // A server has room for a few categories of modules only: then without ours, but never without its own.
            if set_categories(created, all.as_ptr()) != OK {
                set_categories(created, command.categories.as_ptr());
            }
        }
        if let Some(set_command_info) = api.set_command_info {
            let is_write = command.flags.to_bytes().starts_with(b"write");
            if !describe::describe(set_command_info, created, &command.docs, is_write) {
                // A server that wants other descriptions can do without: the command works as well.
                warn(ctx, "the server did not take the description of a command");
            }
        }
    }
    true
}

/// The module's section of INFO.
unsafe extern "C" fn info(info: Info, _is_crash_report: c_int) {
    let api = api();
    let (Some(add_section), Some(add_field)) =
        (api.info_add_section, api.info_add_field_u_long_long)
    else {
        return;
    };
    fn count<T: value::Value>() -> u64 {
        T::data_type().count()
    }
    // SAFETY: the report that is being made; the server copies the names.
    unsafe {
        if add_section(info, c"filters".as_ptr()) != OK {
            return;
        }
        for (name, number) in [
            (c"bloom_filters", count::<Chain>()),
            (c"cuckoo_filters", count::<CuckooFilter>()),
            (c"native_bloom_filters", count::<Native<NativeBloom>>()),
            (c"native_cuckoo_filters", count::<Native<NativeCuckoo>>()),
            (c"count_min_sketches", count::<CountMin>()),
            (c"top_k_sketches", count::<TopK>()),
            (c"t_digests", count::<TDigest>()),
            (c"cuckoo_filters_compacting", compact::jobs()),
            (c"bloom_filters_merging", merge::jobs()),
            (c"memory_bytes", allocator::taken()),
            (c"items_added_total", stats::ADDED.get()),
            (c"items_deleted_total", stats::DELETED.get()),
            (c"queries_total", stats::QUERIES.get()),
            (c"positives_total", stats::POSITIVES.get()),
            (c"growths_total", stats::GROWTHS.get()),
            (c"merges_over_capacity_total", stats::OVERFULL.get()),
            (c"errors_total", stats::ERRORS.get()),
            (c"loads_repaired_total", stats::REPAIRED.get()),
            (c"loads_refused_total", stats::REFUSED.get()),
            (c"longest_step_usec", stats::longest()),
        ] {
            add_field(info, name.as_ptr(), number);
        }
    }
}

//! The server's functions, found by name when the module is loaded.
//!
//! A server hands a module one function, which finds the others by name. Names and meanings are those of Redis'
//! `redismodule.h`; Valkey keeps them. Functions that Redis 6.2 lacks are an `Option`.

use std::ffi::{CStr, c_char, c_double, c_int, c_long, c_longlong, c_uint, c_ulonglong, c_void};
use std::mem;
use std::sync::OnceLock;

/// An opaque object of the server: a context, a string, a key …
#[repr(C)]
pub(crate) struct Opaque {
    _private: [u8; 0],
}

pub(crate) type Ctx = *mut Opaque;
pub(crate) type Str = *mut Opaque;
pub(crate) type KeyPtr = *mut Opaque;
pub(crate) type Io = *mut Opaque;
pub(crate) type Type = *mut Opaque;
pub(crate) type Digest = *mut Opaque;
pub(crate) type Defrag = *mut Opaque;
pub(crate) type CommandPtr = *mut Opaque;
pub(crate) type Info = *mut Opaque;
pub(crate) type BlockedPtr = *mut Opaque;

pub(crate) const OK: c_int = 0;
pub(crate) const ERR: c_int = 1;

/// The type of a command's handler.
pub(crate) type Handler = unsafe extern "C" fn(Ctx, *mut Str, c_int) -> c_int;

/// The callbacks of a data type, in version 3 of the structure (Redis 6.2).
#[repr(C)]
pub(crate) struct TypeMethods {
    pub(crate) version: u64,
    pub(crate) rdb_load: Option<unsafe extern "C" fn(Io, c_int) -> *mut c_void>,
    pub(crate) rdb_save: Option<unsafe extern "C" fn(Io, *mut c_void)>,
    pub(crate) aof_rewrite: Option<unsafe extern "C" fn(Io, Str, *mut c_void)>,
    pub(crate) mem_usage: Option<unsafe extern "C" fn(*const c_void) -> usize>,
    pub(crate) digest: Option<unsafe extern "C" fn(Digest, *mut c_void)>,
    pub(crate) free: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(crate) aux_load: Option<unsafe extern "C" fn(Io, c_int, c_int) -> c_int>,
    pub(crate) aux_save: Option<unsafe extern "C" fn(Io, c_int)>,
    pub(crate) aux_save_triggers: c_int,
    pub(crate) free_effort: Option<unsafe extern "C" fn(Str, *const c_void) -> usize>,
    pub(crate) unlink: Option<unsafe extern "C" fn(Str, *const c_void)>,
    pub(crate) copy: Option<unsafe extern "C" fn(Str, Str, *const c_void) -> *mut c_void>,
    pub(crate) defrag: Option<unsafe extern "C" fn(Defrag, Str, *mut *mut c_void) -> c_int>,
}

pub(crate) const TYPE_METHODS_VERSION: u64 = 3;

/// The type of a function that a timer calls.
pub(crate) type TimerCallback = unsafe extern "C" fn(Ctx, *mut c_void);

type GetNumber = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_longlong;
type SetNumber = unsafe extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut Str) -> c_int;
type GetText = unsafe extern "C" fn(*const c_char, *mut c_void) -> Str;
type SetText = unsafe extern "C" fn(*const c_char, Str, *mut c_void, *mut Str) -> c_int;
type Apply = Option<unsafe extern "C" fn(Ctx, *mut c_void, *mut Str) -> c_int>;

/// The functions of the server that the module calls.
pub(crate) struct Api {
    pub(crate) set_module_attribs: unsafe extern "C" fn(Ctx, *const c_char, c_int, c_int),
    pub(crate) is_module_name_busy: unsafe extern "C" fn(*const c_char) -> c_int,
    pub(crate) set_module_options: unsafe extern "C" fn(Ctx, c_int),
    pub(crate) create_command: unsafe extern "C" fn(
        Ctx,
        *const c_char,
        Handler,
        *const c_char,
        c_int,
        c_int,
        c_int,
    ) -> c_int,
    pub(crate) create_data_type:
        unsafe extern "C" fn(Ctx, *const c_char, c_int, *mut TypeMethods) -> Type,
    pub(crate) log: unsafe extern "C" fn(Ctx, *const c_char, *const c_char, ...),
    pub(crate) log_io_error: unsafe extern "C" fn(Io, *const c_char, *const c_char, ...),

    pub(crate) alloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(crate) calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub(crate) realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub(crate) free: unsafe extern "C" fn(*mut c_void),
    pub(crate) try_alloc: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    pub(crate) try_calloc: Option<unsafe extern "C" fn(usize, usize) -> *mut c_void>,

    pub(crate) wrong_arity: unsafe extern "C" fn(Ctx) -> c_int,
    pub(crate) get_context_flags: unsafe extern "C" fn(Ctx) -> c_int,
    pub(crate) must_obey_client: Option<unsafe extern "C" fn(Ctx) -> c_int>,
    pub(crate) string_ptr_len: unsafe extern "C" fn(Str, *mut usize) -> *const c_char,
    pub(crate) string_to_long_long: unsafe extern "C" fn(Str, *mut c_longlong) -> c_int,
    pub(crate) string_to_double: unsafe extern "C" fn(Str, *mut c_double) -> c_int,
    pub(crate) create_string: unsafe extern "C" fn(Ctx, *const c_char, usize) -> Str,
    pub(crate) free_string: unsafe extern "C" fn(Ctx, Str),

    pub(crate) reply_with_long_long: unsafe extern "C" fn(Ctx, c_longlong) -> c_int,
    pub(crate) reply_with_error: unsafe extern "C" fn(Ctx, *const c_char) -> c_int,
    pub(crate) reply_with_simple_string: unsafe extern "C" fn(Ctx, *const c_char) -> c_int,
    pub(crate) reply_with_string_buffer: unsafe extern "C" fn(Ctx, *const c_char, usize) -> c_int,
    pub(crate) reply_with_double: unsafe extern "C" fn(Ctx, c_double) -> c_int,
    pub(crate) reply_with_null: unsafe extern "C" fn(Ctx) -> c_int,
    pub(crate) reply_with_array: unsafe extern "C" fn(Ctx, c_long) -> c_int,
    pub(crate) reply_with_bool: Option<unsafe extern "C" fn(Ctx, c_int) -> c_int>,
    pub(crate) reply_with_map: Option<unsafe extern "C" fn(Ctx, c_long) -> c_int>,

    pub(crate) replicate: unsafe extern "C" fn(Ctx, *const c_char, *const c_char, ...) -> c_int,
    pub(crate) replicate_verbatim: unsafe extern "C" fn(Ctx) -> c_int,
    pub(crate) notify_keyspace_event: unsafe extern "C" fn(Ctx, c_int, *const c_char, Str) -> c_int,

    pub(crate) open_key: unsafe extern "C" fn(Ctx, Str, c_int) -> KeyPtr,
    pub(crate) close_key: unsafe extern "C" fn(KeyPtr),
    pub(crate) delete_key: unsafe extern "C" fn(KeyPtr) -> c_int,
    pub(crate) get_selected_db: unsafe extern "C" fn(Ctx) -> c_int,
    pub(crate) select_db: unsafe extern "C" fn(Ctx, c_int) -> c_int,
    pub(crate) create_timer:
        unsafe extern "C" fn(Ctx, c_longlong, TimerCallback, *mut c_void) -> u64,
    pub(crate) block_client: unsafe extern "C" fn(
        Ctx,
        Option<Handler>,
        Option<Handler>,
        Option<unsafe extern "C" fn(Ctx, *mut c_void)>,
        c_longlong,
    ) -> BlockedPtr,
    pub(crate) unblock_client: unsafe extern "C" fn(BlockedPtr, *mut c_void) -> c_int,
    pub(crate) get_blocked_client_private_data: unsafe extern "C" fn(Ctx) -> *mut c_void,
    pub(crate) avoid_replica_traffic: Option<unsafe extern "C" fn() -> c_int>,
    pub(crate) key_type: unsafe extern "C" fn(KeyPtr) -> c_int,
    pub(crate) module_type_set_value: unsafe extern "C" fn(KeyPtr, Type, *mut c_void) -> c_int,
    pub(crate) module_type_get_type: unsafe extern "C" fn(KeyPtr) -> Type,
    pub(crate) module_type_get_value: unsafe extern "C" fn(KeyPtr) -> *mut c_void,

    pub(crate) is_io_error: unsafe extern "C" fn(Io) -> c_int,
    pub(crate) save_unsigned: unsafe extern "C" fn(Io, u64),
    pub(crate) load_unsigned: unsafe extern "C" fn(Io) -> u64,
    pub(crate) save_double: unsafe extern "C" fn(Io, c_double),
    pub(crate) load_double: unsafe extern "C" fn(Io) -> c_double,
    pub(crate) save_string_buffer: unsafe extern "C" fn(Io, *const c_char, usize),
    pub(crate) load_string_buffer: unsafe extern "C" fn(Io, *mut usize) -> *mut c_char,
    pub(crate) get_key_name_from_io: Option<unsafe extern "C" fn(Io) -> Str>,
    pub(crate) get_db_id_from_io: Option<unsafe extern "C" fn(Io) -> c_int>,
    pub(crate) emit_aof: unsafe extern "C" fn(Io, *const c_char, *const c_char, ...),

    pub(crate) digest_add_string_buffer: unsafe extern "C" fn(Digest, *const c_char, usize),
    pub(crate) digest_end_sequence: unsafe extern "C" fn(Digest),
    pub(crate) defrag_alloc: Option<unsafe extern "C" fn(Defrag, *mut c_void) -> *mut c_void>,

    pub(crate) register_info_func:
        Option<unsafe extern "C" fn(Ctx, unsafe extern "C" fn(Info, c_int)) -> c_int>,
    pub(crate) info_add_section: Option<unsafe extern "C" fn(Info, *const c_char) -> c_int>,
    pub(crate) info_add_field_u_long_long:
        Option<unsafe extern "C" fn(Info, *const c_char, c_ulonglong) -> c_int>,

    /// Whether the server is Valkey, which has all functions by a second name. Its versions are its own: 8.0 is not Redis 8.
    pub(crate) is_valkey: bool,
    pub(crate) get_server_version: Option<unsafe extern "C" fn() -> c_int>,
    pub(crate) register_numeric_config: Option<
        unsafe extern "C" fn(
            Ctx,
            *const c_char,
            c_longlong,
            c_uint,
            c_longlong,
            c_longlong,
            GetNumber,
            SetNumber,
            Apply,
            *mut c_void,
        ) -> c_int,
    >,
    pub(crate) register_string_config: Option<
        unsafe extern "C" fn(
            Ctx,
            *const c_char,
            *const c_char,
            c_uint,
            GetText,
            SetText,
            Apply,
            *mut c_void,
        ) -> c_int,
    >,
    pub(crate) load_configs: Option<unsafe extern "C" fn(Ctx) -> c_int>,
    pub(crate) get_command: Option<unsafe extern "C" fn(Ctx, *const c_char) -> CommandPtr>,
    pub(crate) set_command_info:
        Option<unsafe extern "C" fn(CommandPtr, *const super::describe::RawInfo) -> c_int>,
    pub(crate) add_acl_category: Option<unsafe extern "C" fn(Ctx, *const c_char) -> c_int>,
    pub(crate) set_command_acl_categories:
        Option<unsafe extern "C" fn(CommandPtr, *const c_char) -> c_int>,
}

static API: OnceLock<Api> = OnceLock::new();

/// The functions, once a server has loaded the module. Tests have none.
pub(crate) fn loaded() -> Option<&'static Api> {
    API.get()
}

/// The functions of the server that calls.
pub(crate) fn api() -> &'static Api {
    API.get().expect("only a server calls this, and it loads the module first")
}

type GetApi = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;

/// Finds all functions. `None` if the server lacks one that is needed.
///
/// # Safety
///
/// `ctx` is the context with which a server loads the module.
pub(crate) unsafe fn find_all(ctx: Ctx) -> Option<&'static Api> {
    // SAFETY: the first word of a context is the address of the function that finds the others.
    let get_api: GetApi = unsafe { *ctx.cast::<GetApi>() };
    let found = resolve(Finder(get_api))?;
    Some(API.get_or_init(|| found))
}

struct Finder(GetApi);

impl Finder {
    /// A function by its name. `F` is its type as declared in [`Api`].
    fn get<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let mut address: *mut c_void = std::ptr::null_mut();
        // SAFETY: the server writes an address to where it is told, or nothing.
        let status = unsafe { (self.0)(name.as_ptr(), (&raw mut address).cast()) };
        if status != OK || address.is_null() {
            return None;
        }
        // SAFETY: the address is that of a function; its type is the one of `redismodule.h`, as written above.
        Some(unsafe { mem::transmute_copy::<*mut c_void, F>(&address) })
    }
}

fn resolve(find: Finder) -> Option<Api> {
    Some(Api {
        set_module_attribs: find.get(c"RedisModule_SetModuleAttribs")?,
        is_module_name_busy: find.get(c"RedisModule_IsModuleNameBusy")?,
        set_module_options: find.get(c"RedisModule_SetModuleOptions")?,
        create_command: find.get(c"RedisModule_CreateCommand")?,
        create_data_type: find.get(c"RedisModule_CreateDataType")?,
        log: find.get(c"RedisModule_Log")?,
        log_io_error: find.get(c"RedisModule_LogIOError")?,
        alloc: find.get(c"RedisModule_Alloc")?,
        calloc: find.get(c"RedisModule_Calloc")?,
        realloc: find.get(c"RedisModule_Realloc")?,
        free: find.get(c"RedisModule_Free")?,
        try_alloc: find.get(c"RedisModule_TryAlloc"),
        try_calloc: find.get(c"RedisModule_TryCalloc"),
        wrong_arity: find.get(c"RedisModule_WrongArity")?,
        get_context_flags: find.get(c"RedisModule_GetContextFlags")?,
        must_obey_client: find.get(c"ValkeyModule_MustObeyClient"),
        string_ptr_len: find.get(c"RedisModule_StringPtrLen")?,
        string_to_long_long: find.get(c"RedisModule_StringToLongLong")?,
        string_to_double: find.get(c"RedisModule_StringToDouble")?,
        create_string: find.get(c"RedisModule_CreateString")?,
        free_string: find.get(c"RedisModule_FreeString")?,
        reply_with_long_long: find.get(c"RedisModule_ReplyWithLongLong")?,
        reply_with_error: find.get(c"RedisModule_ReplyWithError")?,
        reply_with_simple_string: find.get(c"RedisModule_ReplyWithSimpleString")?,
        reply_with_string_buffer: find.get(c"RedisModule_ReplyWithStringBuffer")?,
        reply_with_double: find.get(c"RedisModule_ReplyWithDouble")?,
        reply_with_null: find.get(c"RedisModule_ReplyWithNull")?,
        reply_with_array: find.get(c"RedisModule_ReplyWithArray")?,
        reply_with_bool: find.get(c"RedisModule_ReplyWithBool"),
        reply_with_map: find.get(c"RedisModule_ReplyWithMap"),
        replicate: find.get(c"RedisModule_Replicate")?,
        replicate_verbatim: find.get(c"RedisModule_ReplicateVerbatim")?,
        notify_keyspace_event: find.get(c"RedisModule_NotifyKeyspaceEvent")?,
        open_key: find.get(c"RedisModule_OpenKey")?,
        close_key: find.get(c"RedisModule_CloseKey")?,
        delete_key: find.get(c"RedisModule_DeleteKey")?,
        get_selected_db: find.get(c"RedisModule_GetSelectedDb")?,
        select_db: find.get(c"RedisModule_SelectDb")?,
        create_timer: find.get(c"RedisModule_CreateTimer")?,
        block_client: find.get(c"RedisModule_BlockClient")?,
        unblock_client: find.get(c"RedisModule_UnblockClient")?,
        get_blocked_client_private_data: find.get(c"RedisModule_GetBlockedClientPrivateData")?,
        avoid_replica_traffic: find.get(c"RedisModule_AvoidReplicaTraffic"),
        key_type: find.get(c"RedisModule_KeyType")?,
        module_type_set_value: find.get(c"RedisModule_ModuleTypeSetValue")?,
        module_type_get_type: find.get(c"RedisModule_ModuleTypeGetType")?,
        module_type_get_value: find.get(c"RedisModule_ModuleTypeGetValue")?,
        is_io_error: find.get(c"RedisModule_IsIOError")?,
        save_unsigned: find.get(c"RedisModule_SaveUnsigned")?,
        load_unsigned: find.get(c"RedisModule_LoadUnsigned")?,
        save_double: find.get(c"RedisModule_SaveDouble")?,
        load_double: find.get(c"RedisModule_LoadDouble")?,
        save_string_buffer: find.get(c"RedisModule_SaveStringBuffer")?,
        load_string_buffer: find.get(c"RedisModule_LoadStringBuffer")?,
        get_key_name_from_io: find.get(c"RedisModule_GetKeyNameFromIO"),
        get_db_id_from_io: find.get(c"RedisModule_GetDbIdFromIO"),
        emit_aof: find.get(c"RedisModule_EmitAOF")?,
        digest_add_string_buffer: find.get(c"RedisModule_DigestAddStringBuffer")?,
        digest_end_sequence: find.get(c"RedisModule_DigestEndSequence")?,
        defrag_alloc: find.get(c"RedisModule_DefragAlloc"),
        register_info_func: find.get(c"RedisModule_RegisterInfoFunc"),
        info_add_section: find.get(c"RedisModule_InfoAddSection"),
        info_add_field_u_long_long: find.get(c"RedisModule_InfoAddFieldULongLong"),
        is_valkey: find.get::<*mut c_void>(c"ValkeyModule_SetModuleAttribs").is_some(),
        get_server_version: find.get(c"RedisModule_GetServerVersion"),
        register_numeric_config: find.get(c"RedisModule_RegisterNumericConfig"),
        register_string_config: find.get(c"RedisModule_RegisterStringConfig"),
        load_configs: find.get(c"RedisModule_LoadConfigs"),
        get_command: find.get(c"RedisModule_GetCommand"),
        set_command_info: find.get(c"RedisModule_SetCommandInfo"),
        add_acl_category: find.get(c"RedisModule_AddACLCategory"),
        set_command_acl_categories: find.get(c"RedisModule_SetCommandACLCategories"),
    })
}

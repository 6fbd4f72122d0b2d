//! Settings that CONFIG SET changes, and the arguments of the module.
//!
//! Servers before Redis 7 have no settings of modules, only load-time arguments.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::api::{Api, Ctx, ERR, OK, Opaque, Str, api};
use super::call::{Call, double_of};
use super::register::{Identity, OWN, REDISBLOOM};
use crate::settings::{
    BF_CAPACITY, BF_RATE, CF_MAX_EXPANSIONS, MEMORY_LIMIT, Number, REDISBLOOM_NUMBERS, Rate,
    STEP_USEC, parse_bytes,
};

const MEMORY: c_uint = 1 << 7;
const UNPREFIXED: c_uint = 1 << 9;

/// The first version with settings without the module's name as a prefix: Redis 8.0.
const UNPREFIXED_SINCE: c_int = 0x0008_0000;

/// Registers all settings, and applies the values of the server's configuration file.
///
/// # Safety
///
/// `ctx` is the context with which a server loads the module.
pub(super) unsafe fn register(api: &Api, ctx: Ctx) -> Result<(), ConfigError> {
    let (Some(register_number), Some(register_text), Some(load_configs)) =
        (api.register_numeric_config, api.register_string_config, api.load_configs)
    else {
        return Ok(());
    };
    // SAFETY: it takes nothing.
    let version = api.get_server_version.map_or(0, |get| unsafe { get() });
    let plain = if version >= UNPREFIXED_SINCE && !api.is_valkey { UNPREFIXED } else { 0 };
    let register_number = |number: &'static Number, flags: c_uint| {
        // SAFETY: the context of loading; the functions below fit; the address is that of something that lives for ever.
        let status = unsafe {
            register_number(
                ctx,
                number.name.as_ptr(),
                number.default,
                flags,
                number.least,
                number.greatest,
                get_number,
                set_number,
                None,
                ptr::from_ref(number).cast_mut().cast(),
            )
        };
        checked(status, number.name)
    };
    for number in REDISBLOOM_NUMBERS {
        register_number(number, plain)?;
    }
    register_number(&MEMORY_LIMIT, MEMORY)?;
    register_number(&STEP_USEC, 0)?;
    // SAFETY: as above.
    let status = unsafe {
        register_text(
            ctx,
            BF_RATE.name.as_ptr(),
            BF_RATE.default.as_ptr(),
            plain,
            get_rate,
            set_rate,
            None,
            ptr::null_mut(),
        )
    };
    checked(status, BF_RATE.name)?;
    // SAFETY: the context of loading.
    checked(unsafe { load_configs(ctx) }, c"of the configuration file")
}

fn checked(status: c_int, name: &'static CStr) -> Result<(), ConfigError> {
    if status == OK { Ok(()) } else { Err(ConfigError::Setting { name }) }
}

/// A setting or an argument that the module cannot be loaded with.
pub(super) enum ConfigError {
    /// The server refused a setting.
    Setting { name: &'static CStr },
    /// The argument NAME is neither of the two names.
    Name,
    /// An argument without a value.
    Unpaired,
    /// An argument of this name is not known.
    Unknown { name: String },
    /// The value of this argument is out of range, or not a number.
    Value { name: String },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { name } => write!(f, "setting {} refused", name.to_string_lossy()),
            Self::Name => write!(f, "NAME must be ironbloom or bf"),
            Self::Unpaired => write!(f, "arguments must be pairs of name and value"),
            Self::Unknown { name } => write!(f, "there is no argument {name}"),
            Self::Value { name } => write!(f, "the value of {name} is not allowed"),
        }
    }
}

unsafe extern "C" fn get_number(_name: *const c_char, number: *mut c_void) -> c_longlong {
    // SAFETY: the address that `register` gave.
    unsafe { &*number.cast::<Number>() }.get()
}

unsafe extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    number: *mut c_void,
    _error: *mut Str,
) -> c_int {
    // SAFETY: the address that `register` gave.
    if unsafe { &*number.cast::<Number>() }.set(value) { OK } else { ERR }
}

/// The rate as the server's string: it reads it and does not free it.
static RATE_TEXT: AtomicPtr<Opaque> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C" fn get_rate(_name: *const c_char, _data: *mut c_void) -> Str {
    let text = BF_RATE.get().to_string();
    // SAFETY: without a context the string is ours until we free it, which happens when the next one is made.
    unsafe {
        let made = (api().create_string)(ptr::null_mut(), text.as_ptr().cast(), text.len());
        let last = RATE_TEXT.swap(made, Ordering::Relaxed);
        if !last.is_null() {
            (api().free_string)(ptr::null_mut(), last);
        }
        made
    }
}

unsafe extern "C" fn set_rate(
    _name: *const c_char,
    value: Str,
    _data: *mut c_void,
    error: *mut Str,
) -> c_int {
    // SAFETY: a string of the server.
    if unsafe { double_of(value) }.is_some_and(|rate| BF_RATE.set(rate)) {
        return OK;
    }
    let text = "error rate must be in the range (0.000000, 1.000000)";
    // SAFETY: the server frees the error that is written here.
    unsafe {
        *error = (api().create_string)(ptr::null_mut(), text.as_ptr().cast(), text.len());
    }
    ERR
}

/// The argument that sets the module's name.
const NAME_ARGUMENT: &[u8] = b"name";

/// The module's name and version, which must be known before anything is registered.
pub(super) fn identity(args: &Call<'_>) -> Result<Identity, ConfigError> {
    let mut named = (0..args.count()).step_by(2);
    let named = named.find(|&i| args.arg(i).eq_ignore_ascii_case(NAME_ARGUMENT));
    match named.filter(|i| i + 1 < args.count()).map(|i| args.arg(i + 1)) {
        None | Some(b"ironbloom") => Ok(OWN),
        Some(b"bf") => Ok(REDISBLOOM),
        Some(_) => Err(ConfigError::Name),
    }
}

/// Applies the arguments of the module: pairs of name and value, by the names of settings or RedisBloom's older ones.
pub(super) fn load_arguments(args: &Call<'_>) -> Result<(), ConfigError> {
    if !args.count().is_multiple_of(2) {
        return Err(ConfigError::Unpaired);
    }
    for i in (0..args.count()).step_by(2) {
        let name = String::from_utf8_lossy(args.arg(i)).to_ascii_lowercase();
        let is_set = match name.as_str() {
            name if name.as_bytes() == NAME_ARGUMENT => true,
            "error_rate" => set_rate_argument(&BF_RATE, args, i + 1),
            "initial_size" => set_number_argument(&BF_CAPACITY, args, i + 1),
            "cf_max_expansions" => set_number_argument(&CF_MAX_EXPANSIONS, args, i + 1),
            name if name.as_bytes() == BF_RATE.name.to_bytes() => {
                set_rate_argument(&BF_RATE, args, i + 1)
            }
            name if name.as_bytes() == MEMORY_LIMIT.name.to_bytes() => {
                parse_bytes(args.arg(i + 1)).is_some_and(|bytes| MEMORY_LIMIT.set(bytes))
            }
            name => {
                let mut numbers = REDISBLOOM_NUMBERS.into_iter().chain([&STEP_USEC]);
                match numbers.find(|number| number.name.to_bytes() == name.as_bytes()) {
                    Some(number) => set_number_argument(number, args, i + 1),
                    None => return Err(ConfigError::Unknown { name: name.to_owned() }),
                }
            }
        };
        if !is_set {
            return Err(ConfigError::Value { name });
        }
    }
    Ok(())
}

fn set_rate_argument(rate: &Rate, args: &Call<'_>, i: usize) -> bool {
    args.double(i).is_some_and(|value| rate.set(value))
}

fn set_number_argument(number: &Number, args: &Call<'_>, i: usize) -> bool {
    args.integer(i).is_some_and(|value| number.set(value))
}

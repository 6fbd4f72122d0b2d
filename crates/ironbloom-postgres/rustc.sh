#!/bin/sh
# For cargo as RUSTC_WRAPPER, with DOCS_RS=1: pgrx takes the declarations of the server that it carries for its documentation,
# where there are no headers. Only pgrx: other crates would ask for features of nightly.
rustc=$1
shift
case " $* " in
	*" --crate-name pgrx_pg_sys "*) exec "$rustc" "$@" --cfg docsrs ;;
	*) exec "$rustc" "$@" ;;
esac

//! `ironorb completions`: scripts with which shells complete the command line.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Which shell.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, "ironorb", &mut script);
    script.extend_from_slice(operations(arguments.shell).as_bytes());
    output::text(String::from_utf8_lossy(&script))
}

/// Completes the operations of `ironorb call`, which only the object's interface knows. The generated scripts
/// complete the rest, also where no operations are known.
fn operations(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        _ => "",
    }
}

const BASH: &str = r#"
_ironorb_operations() {
    _ironorb "$@"
    if [[ ${COMP_WORDS[1]} == call && $2 != -* ]]; then
        local names
        names=$("$1" complete-operations "${COMP_LINE:0:COMP_POINT}" 2>/dev/null </dev/null)
        if [[ -n $names ]]; then
            mapfile -t COMPREPLY <<<"$names"
        fi
    fi
}
complete -F _ironorb_operations -o bashdefault -o default ironorb
"#;

const ZSH: &str = r#"
_ironorb_operations() {
    if [[ ${words[2]} == call && ${words[CURRENT]} != -* ]]; then
        local -a names
        names=(${(f)"$(${words[1]} complete-operations "$LBUFFER" 2>/dev/null </dev/null)"})
        if (( ${#names} )); then
            compadd -a names
            return
        fi
    fi
    _ironorb "$@"
}
compdef _ironorb_operations ironorb
"#;

const FISH: &str = r#"
complete -c ironorb -n '__fish_seen_subcommand_from call' -a '(ironorb complete-operations (commandline -cp | string collect) 2>/dev/null </dev/null)'
"#;

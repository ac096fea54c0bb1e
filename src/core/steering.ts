/**
 * Whether a variable of this name controls a loader, a language runtime, a shell, git or a CI runner. Through it,
 * anyone who may set one value of a project could run code wherever its variables become an environment.
 */
export function isSteering(name: string, system: NodeJS.Platform = process.platform): boolean {
  const spelled = system === "win32" ? name.toUpperCase() : name;
  return names.has(spelled) || families.test(spelled);
}

const families = new RegExp(
  `^(?:${[
    ...["LD_", "DYLD_", "_RLD", "GLIBC_", "MALLOC_"], // loaders and the C library
    ...["GIT_", "GITHUB_", "RUNNER_", "ACTIONS_", "INPUT_"], // git and CI runners
    ...["BASH_", "KEYHOLE_", "NPM_CONFIG_", "npm_config_", "BUN_", "COR_", "CORECLR_"],
  ].join("|")})`,
);

const names: ReadonlySet<string> = new Set([
  // The search path for programs, and what shells run before or between commands.
  ...["PATH", "PATHEXT", "COMSPEC", "ComSpec", "SHELL", "ENV", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH", "GLOBIGNORE"],
  ...["PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "ZDOTDIR", "FPATH", "HISTFILE", "PSModulePath"],
  // Code or options that a language's runtime takes before the program.
  ...["NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE"],
  ...["ELECTRON_RUN_AS_NODE", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONWARNINGS"],
  ...["PYTHONBREAKPOINT", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX", "PYTHONEXECUTABLE"],
  ...["PERL5LIB", "PERL5OPT", "PERL5DB", "PERLLIB", "PERLIO", "RUBYOPT", "RUBYLIB", "RUBYSHELL", "BUNDLE_GEMFILE"],
  ...["GEM_HOME", "GEM_PATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "MAVEN_OPTS"],
  ...["GRADLE_OPTS", "DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "PHPRC", "PHP_INI_SCAN_DIR", "LUA_INIT"],
  ...["LUA_PATH", "LUA_CPATH", "GOFLAGS", "GOROOT", "RUSTC", "RUSTC_WRAPPER", "RUSTFLAGS", "R_PROFILE", "R_ENVIRON"],
  // Programs that other programs start, and files with code that they load.
  ...["EDITOR", "VISUAL", "PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "BROWSER", "SSH_ASKPASS", "SUDO_ASKPASS"],
  ...["MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "SSLKEYLOGFILE"],
  ...["GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS", "RESOLV_HOST_CONF", "GETCONF_DIR"],
  ...["TERMINFO", "TERMINFO_DIRS", "TERMCAP", "HOME", "__PYVENV_LAUNCHER__"],
]);

/**
 * Whether a variable of this name controls a loader, a language runtime, a shell, git, a CI runner or a tool. Through
 * it, anyone who may set one value of a project could run code wherever its variables become an environment.
 */
export function isSteering(name: string, system: NodeJS.Platform = process.platform): boolean {
  return (system === "win32" ? steeringOnWindows : steering).test(name);
}

/**
 * Names that programs act on, below the page that says so; `*` is any text. docs/fetch.md says what is left out:
 * names that many people store on purpose, and names that only one program's own start script reads.
 */
export const steeringNames: readonly string[] = [
  // Loaders and the C library.
  // https://man7.org/linux/man-pages/man8/ld.so.8.html
  "LD_* GLIBC_* MALLOC_* GCONV_PATH GETCONF_DIR HOSTALIASES LOCALDOMAIN LOCPATH NLSPATH RESOLV_HOST_CONF RES_OPTIONS",
  // https://www.sudo.ws/docs/man/sudoers.man/
  "_RLD* LDR_* LIBPATH SHLIB_PATH",
  // https://www.manpagez.com/man/1/dyld/
  "DYLD_*",
  // Shells, and where they find programs and their own files.
  // https://www.gnu.org/software/bash/manual/html_node/Shell-Variables.html
  "PATH HOME SHELL ENV BASH_* SHELLOPTS BASHOPTS IFS CDPATH GLOBIGNORE PS0 PS1 PS2 PS4 PROMPT_COMMAND HISTFILE INPUTRC",
  // https://zsh.sourceforge.io/Doc/Release/Parameters.html
  "ZDOTDIR FPATH NULLCMD READNULLCMD",
  // https://learn.microsoft.com/en-us/windows-server/administration/windows-commands/start
  "PATHEXT COMSPEC ComSpec",
  // https://learn.microsoft.com/en-us/powershell/module/microsoft.powershell.core/about/about_environment_variables
  "PSModulePath",
  // https://specifications.freedesktop.org/basedir-spec/latest/
  "XDG_*_HOME XDG_*_DIRS",
  // git, CI runners and Keyhole's own settings.
  // https://git-scm.com/docs/git#_environment_variables
  "GIT_*",
  // https://docs.github.com/en/actions/reference/workflows-and-actions/variables
  "GITHUB_* RUNNER_* ACTIONS_* INPUT_*",
  // docs/configuration.md
  "KEYHOLE_*",
  // Runtimes of languages, and their tools.
  // https://nodejs.org/api/cli.html#environment-variables_1
  "NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE",
  // https://www.electronjs.org/docs/latest/api/environment-variables
  "ELECTRON_RUN_AS_NODE",
  // https://docs.npmjs.com/cli/v11/using-npm/config#environment-variables
  "NPM_CONFIG_* npm_config_*",
  // https://yarnpkg.com/configuration/yarnrc
  "YARN_YARN_PATH YARN_RC_FILENAME",
  // https://bun.com/docs/runtime/environment-variables
  "BUN_*",
  // https://docs.python.org/3/using/cmdline.html#environment-variables
  "PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONINSPECT PYTHONWARNINGS PYTHONBREAKPOINT PYTHONUSERBASE PYTHONPLATLIBDIR",
  // https://docs.python.org/3/library/sys.html
  "PYTHONPYCACHEPREFIX PYTHONEXECUTABLE __PYVENV_LAUNCHER__",
  // https://perldoc.perl.org/perlrun#ENVIRONMENT
  "PERL5LIB PERL5OPT PERL5DB PERL5SHELL PERLLIB PERLIO*",
  // https://manpages.debian.org/stable/ruby/ruby.1.en.html
  "RUBYOPT RUBYLIB RUBYPATH RUBYSHELL",
  // https://guides.rubygems.org/command-reference/#gem-environment
  "GEM_HOME GEM_PATH",
  // https://bundler.io/man/bundle-config.1.html
  "BUNDLE_GEMFILE",
  // https://github.com/jruby/jruby/wiki/Environment-Flag
  "JRUBY_OPTS",
  // https://docs.oracle.com/en/java/javase/21/docs/specs/man/java.html
  "JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS JDK_JAVAC_OPTIONS _JAVA_OPTIONS CLASSPATH",
  // https://eclipse.dev/openj9/docs/cmdline_specifying/
  "OPENJ9_JAVA_OPTIONS IBM_JAVA_OPTIONS",
  // https://maven.apache.org/configure.html
  "MAVEN_OPTS MAVEN_ARGS",
  // https://docs.gradle.org/current/userguide/build_environment.html
  "GRADLE_OPTS",
  // https://learn.microsoft.com/en-us/dotnet/core/tools/dotnet-environment-variables
  "COR_* CORECLR_* DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS DOTNET_SHARED_STORE DOTNET_ROOT*",
  // https://www.php.net/manual/en/configuration.file.php
  "PHPRC PHP_INI_SCAN_DIR",
  // https://www.lua.org/manual/5.4/manual.html#7
  "LUA_INIT* LUA_PATH* LUA_CPATH*",
  // https://pkg.go.dev/cmd/go#hdr-Environment_variables
  "GOFLAGS GOROOT GOENV GOTOOLCHAIN",
  // https://doc.rust-lang.org/cargo/reference/environment-variables.html
  "RUSTC RUSTC_*WRAPPER RUSTDOC RUST*FLAGS CARGO_HOME CARGO_*RUST*FLAGS CARGO_BUILD_RUST*",
  // https://doc.rust-lang.org/cargo/reference/config.html
  "CARGO_*_RUNNER CARGO_*_LINKER CARGO_*CREDENTIAL_PROVIDER*",
  // https://stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html
  "R_PROFILE R_ENVIRON R_HOME R_LIBS R_LIBS_SITE R_MAKEVARS_SITE R_*_USER",
  // https://www.erlang.org/doc/apps/erts/erl_cmd.html#environment-variables
  "ERL_*FLAGS ERL_LIBS",
  // https://man.archlinux.org/man/extra/elixir/elixir.1.en
  "ELIXIR_ERL_OPTIONS",
  // https://docs.julialang.org/en/v1/manual/environment-variables/
  "JULIA_LOAD_PATH JULIA_DEPOT_PATH",
  // Tools, the programs that they start, and files with code that they load.
  // https://man7.org/linux/man-pages/man1/man.1.html
  "PAGER MANPAGER MANOPT",
  // https://man7.org/linux/man-pages/man1/less.1.html
  "LESS LESSOPEN LESSCLOSE LESSEDIT LESSKEY* EDITOR VISUAL",
  // https://docs.python.org/3/library/webbrowser.html
  "BROWSER",
  // https://man.openbsd.org/ssh.1#ENVIRONMENT
  "SSH_ASKPASS",
  // https://www.sudo.ws/docs/man/sudo.man/
  "SUDO_ASKPASS SUDO_EDITOR",
  // https://www.gnu.org/software/make/manual/html_node/Environment.html
  "MAKEFLAGS GNUMAKEFLAGS MAKEFILES",
  // https://www.gnu.org/software/tar/manual/html_node/using-tar-options.html
  "TAR_OPTIONS",
  // https://download.samba.org/pub/rsync/rsync.1
  "RSYNC_RSH RSYNC_CONNECT_PROG",
  // https://svnbook.red-bean.com/en/1.7/svn.advanced.confarea.html
  "SVN_SSH SVN_EDITOR",
  // https://mercurial-scm.org/help/topics/environment.html
  "HG HGRCPATH HGEDITOR HGMERGE",
  // https://www.gnu.org/software/trans-coord/manual/cvs/html_node/Environment-variables.html
  "CVS_RSH CVSEDITOR",
  // https://www.postgresql.org/docs/current/app-psql.html
  "PSQLRC PSQL_EDITOR PSQL_PAGER PSQL_WATCH_PAGER",
  // https://vimhelp.org/starting.txt.html
  "VIMINIT GVIMINIT EXINIT MYVIMRC VIM VIMRUNTIME",
  // https://www.gnu.org/software/emacs/manual/html_node/emacs/General-Variables.html
  "EMACSLOADPATH",
  // https://docs.openssl.org/3.0/man7/openssl-env/
  "OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES",
  // https://curl.se/docs/manpage.html
  "SSLKEYLOGFILE",
  // https://man7.org/linux/man-pages/man3/ncurses.3x.html
  "TERMINFO TERMINFO_DIRS TERMCAP",
].flatMap((names) => names.split(" "));

const pattern = steeringNames.map((name) => name.replaceAll("*", "\\w*")).join("|");
const steering = new RegExp(`^(?:${pattern})$`);
/** Windows takes a name in any case. */
const steeringOnWindows = new RegExp(steering, "i");

CLI_TEST_LIBS = src/libcli.a src/libconf.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)

check_PROGRAMS += t/unit/cli/command
t_unit_cli_command_SOURCES = t/unit/cli/command.c
t_unit_cli_command_LDADD = $(CLI_TEST_LIBS)

check_PROGRAMS += t/unit/cli/find_conf
t_unit_cli_find_conf_SOURCES = t/unit/cli/find_conf.c
t_unit_cli_find_conf_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=access -Wl,--wrap=geteuid -Wl,--wrap=isatty
t_unit_cli_find_conf_LDADD = $(CLI_TEST_LIBS)

check_PROGRAMS += t/unit/cli/suggest_log
t_unit_cli_suggest_log_SOURCES = t/unit/cli/suggest_log.c
t_unit_cli_suggest_log_LDADD = $(CLI_TEST_LIBS)

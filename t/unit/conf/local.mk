CONF_TEST_LIBS = src/libconf.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)

check_PROGRAMS += t/unit/conf/diff
t_unit_conf_diff_SOURCES = t/unit/conf/diff.c
t_unit_conf_diff_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/lint
t_unit_conf_lint_SOURCES = t/unit/conf/lint.c t/unit/conf/conf_test.h
t_unit_conf_lint_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/load
t_unit_conf_load_SOURCES = t/unit/conf/load.c t/unit/conf/conf_test.h
t_unit_conf_load_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/location
t_unit_conf_location_SOURCES = t/unit/conf/location.c t/unit/conf/conf_test.h
t_unit_conf_location_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/mime_types
t_unit_conf_mime_types_SOURCES = t/unit/conf/mime_types.c t/unit/conf/conf_test.h
t_unit_conf_mime_types_LDADD = src/libhttp.a $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/print
t_unit_conf_print_SOURCES = t/unit/conf/print.c t/unit/conf/conf_test.h
t_unit_conf_print_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/scope
t_unit_conf_scope_SOURCES = t/unit/conf/scope.c t/unit/conf/conf_test.h
t_unit_conf_scope_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/settings
t_unit_conf_settings_SOURCES = t/unit/conf/settings.c t/unit/conf/conf_test.h
t_unit_conf_settings_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/site
t_unit_conf_site_SOURCES = t/unit/conf/site.c t/unit/conf/conf_test.h
t_unit_conf_site_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/template
t_unit_conf_template_SOURCES = t/unit/conf/template.c t/unit/conf/conf_test.h
t_unit_conf_template_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/upstream
t_unit_conf_upstream_SOURCES = t/unit/conf/upstream.c t/unit/conf/conf_test.h
t_unit_conf_upstream_LDADD = $(CONF_TEST_LIBS)

check_PROGRAMS += t/unit/conf/value
t_unit_conf_value_SOURCES = t/unit/conf/value.c t/unit/conf/conf_test.h
t_unit_conf_value_LDADD = $(CONF_TEST_LIBS)


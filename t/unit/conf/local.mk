check_PROGRAMS += t/unit/conf/diff
t_unit_conf_diff_SOURCES = t/unit/conf/diff.c
t_unit_conf_diff_LDADD = src/libconf.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)

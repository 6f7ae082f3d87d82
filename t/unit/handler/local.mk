check_PROGRAMS += t/unit/handler/file_cache
t_unit_handler_file_cache_SOURCES = t/unit/handler/file_cache.c
t_unit_handler_file_cache_LDADD = src/libhandler.a src/libhttp.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/handler/file_path
t_unit_handler_file_path_SOURCES = t/unit/handler/file_path.c
t_unit_handler_file_path_LDADD = src/libhandler.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)

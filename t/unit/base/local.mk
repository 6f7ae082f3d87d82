check_PROGRAMS += t/unit/base/addr
t_unit_base_addr_SOURCES = t/unit/base/addr.c
t_unit_base_addr_LDADD = src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/base/arena
t_unit_base_arena_SOURCES = t/unit/base/arena.c
t_unit_base_arena_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
t_unit_base_arena_LDADD = src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/base/buf
t_unit_base_buf_SOURCES = t/unit/base/buf.c
t_unit_base_buf_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
t_unit_base_buf_LDADD = src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/base/check
t_unit_base_check_SOURCES = t/unit/base/check.c
t_unit_base_check_LDADD = src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/base/clock
t_unit_base_clock_SOURCES = t/unit/base/clock.c
t_unit_base_clock_LDADD = src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/base/log
t_unit_base_log_SOURCES = t/unit/base/log.c
t_unit_base_log_LDADD = src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/base/map
t_unit_base_map_SOURCES = t/unit/base/map.c
t_unit_base_map_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
t_unit_base_map_LDADD = src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/base/str
t_unit_base_str_SOURCES = t/unit/base/str.c
t_unit_base_str_LDADD = src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/base/units
t_unit_base_units_SOURCES = t/unit/base/units.c
t_unit_base_units_LDADD = src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/base/utf8
t_unit_base_utf8_SOURCES = t/unit/base/utf8.c
t_unit_base_utf8_LDADD = src/libbase.a $(CMOCKA_LIBS)

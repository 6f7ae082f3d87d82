check_PROGRAMS += t/unit/net/conn
t_unit_net_conn_SOURCES = t/unit/net/conn.c
t_unit_net_conn_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
t_unit_net_conn_LDADD = src/libnet.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/net/deadline
t_unit_net_deadline_SOURCES = t/unit/net/deadline.c
t_unit_net_deadline_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
t_unit_net_deadline_LDADD = src/libnet.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/net/listen
t_unit_net_listen_SOURCES = t/unit/net/listen.c
t_unit_net_listen_LDADD = src/libnet.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/net/loop
t_unit_net_loop_SOURCES = t/unit/net/loop.c
t_unit_net_loop_LDADD = src/libnet.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/net/mailbox
t_unit_net_mailbox_SOURCES = t/unit/net/mailbox.c
t_unit_net_mailbox_LDADD = src/libnet.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)

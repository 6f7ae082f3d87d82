HTTP_TEST_LIBS = src/libhttp.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)

check_PROGRAMS += t/unit/http/accept
t_unit_http_accept_SOURCES = t/unit/http/accept.c
t_unit_http_accept_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/cond
t_unit_http_cond_SOURCES = t/unit/http/cond.c
t_unit_http_cond_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/credentials
t_unit_http_credentials_SOURCES = t/unit/http/credentials.c
t_unit_http_credentials_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/date
t_unit_http_date_SOURCES = t/unit/http/date.c
t_unit_http_date_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/fields
t_unit_http_fields_SOURCES = t/unit/http/fields.c
t_unit_http_fields_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/forwarded
t_unit_http_forwarded_SOURCES = t/unit/http/forwarded.c
t_unit_http_forwarded_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/h1_chunk
t_unit_http_h1_chunk_SOURCES = t/unit/http/h1_chunk.c t/unit/http/h1_rows.h
t_unit_http_h1_chunk_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/h1_frame
t_unit_http_h1_frame_SOURCES = t/unit/http/h1_frame.c t/unit/http/h1_rows.h
t_unit_http_h1_frame_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/h1_line
t_unit_http_h1_line_SOURCES = t/unit/http/h1_line.c t/unit/http/h1_rows.h
t_unit_http_h1_line_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/h1_read
t_unit_http_h1_read_SOURCES = t/unit/http/h1_read.c t/unit/http/h1_rows.h
t_unit_http_h1_read_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/h1_section
t_unit_http_h1_section_SOURCES = t/unit/http/h1_section.c t/unit/http/h1_rows.h
t_unit_http_h1_section_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/h1_write
t_unit_http_h1_write_SOURCES = t/unit/http/h1_write.c
t_unit_http_h1_write_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/head
t_unit_http_head_SOURCES = t/unit/http/head.c
t_unit_http_head_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/mime
t_unit_http_mime_SOURCES = t/unit/http/mime.c
t_unit_http_mime_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/proxy_header
t_unit_http_proxy_header_SOURCES = t/unit/http/proxy_header.c
t_unit_http_proxy_header_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/range
t_unit_http_range_SOURCES = t/unit/http/range.c
t_unit_http_range_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/status
t_unit_http_status_SOURCES = t/unit/http/status.c
t_unit_http_status_LDADD = $(HTTP_TEST_LIBS)

check_PROGRAMS += t/unit/http/target
t_unit_http_target_SOURCES = t/unit/http/target.c
t_unit_http_target_LDADD = $(HTTP_TEST_LIBS)
check_PROGRAMS += t/unit/http/ws_frames
t_unit_http_ws_frames_SOURCES = t/unit/http/ws_frames.c
t_unit_http_ws_frames_LDADD = src/libhttp.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)

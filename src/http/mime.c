/* SPDX-License-Identifier: MIT */
/*
 * Media types by file name extension (RFC 9110 §8.3; names from the IANA registry,
 * JavaScript by RFC 9239). A sorted table, searched by halves; a test holds it to its
 * order. Anything unknown is application/octet-stream: a browser then asks instead of
 * guessing. Text is declared to be UTF-8, which is what editors have written for two
 * decades; JSON and SVG say so themselves.
 */
#include "http/mime.h"

#define TEXT "; charset=utf-8"
enum { EXTENSION_MAX = 12 };

static const struct {
    char extension[EXTENSION_MAX];
    const char *type;
} types[] = {
    { "3gp", "video/3gpp" },
    { "7z", "application/x-7z-compressed" },
    { "aac", "audio/aac" },
    { "apng", "image/apng" },
    { "atom", "application/atom+xml" },
    { "avi", "video/x-msvideo" },
    { "avif", "image/avif" },
    { "bmp", "image/bmp" },
    { "br", "application/x-brotli" },
    { "bz2", "application/x-bzip2" },
    { "cjs", "text/javascript" TEXT },
    { "css", "text/css" TEXT },
    { "csv", "text/csv" TEXT },
    { "deb", "application/vnd.debian.binary-package" },
    { "doc", "application/msword" },
    { "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
    { "eot", "application/vnd.ms-fontobject" },
    { "epub", "application/epub+zip" },
    { "flac", "audio/flac" },
    { "geojson", "application/geo+json" },
    { "gif", "image/gif" },
    { "glb", "model/gltf-binary" },
    { "gltf", "model/gltf+json" },
    { "gz", "application/gzip" },
    { "htm", "text/html" TEXT },
    { "html", "text/html" TEXT },
    { "ico", "image/x-icon" },
    { "ics", "text/calendar" TEXT },
    { "jar", "application/java-archive" },
    { "jpe", "image/jpeg" },
    { "jpeg", "image/jpeg" },
    { "jpg", "image/jpeg" },
    { "js", "text/javascript" TEXT },
    { "json", "application/json" },
    { "jsonld", "application/ld+json" },
    { "jxl", "image/jxl" },
    { "m3u8", "application/vnd.apple.mpegurl" },
    { "m4a", "audio/mp4" },
    { "m4v", "video/mp4" },
    { "map", "application/json" },
    { "markdown", "text/markdown" TEXT },
    { "md", "text/markdown" TEXT },
    { "mid", "audio/midi" },
    { "midi", "audio/midi" },
    { "mjs", "text/javascript" TEXT },
    { "mov", "video/quicktime" },
    { "mp3", "audio/mpeg" },
    { "mp4", "video/mp4" },
    { "mpeg", "video/mpeg" },
    { "mpg", "video/mpeg" },
    { "odp", "application/vnd.oasis.opendocument.presentation" },
    { "ods", "application/vnd.oasis.opendocument.spreadsheet" },
    { "odt", "application/vnd.oasis.opendocument.text" },
    { "oga", "audio/ogg" },
    { "ogg", "audio/ogg" },
    { "ogv", "video/ogg" },
    { "opus", "audio/ogg" },
    { "otf", "font/otf" },
    { "pdf", "application/pdf" },
    { "png", "image/png" },
    { "ppt", "application/vnd.ms-powerpoint" },
    { "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
    { "ps", "application/postscript" },
    { "rar", "application/vnd.rar" },
    { "rss", "application/rss+xml" },
    { "rtf", "application/rtf" },
    { "shtml", "text/html" TEXT },
    { "svg", "image/svg+xml" },
    { "svgz", "image/svg+xml" },
    { "swf", "application/vnd.adobe.flash.movie" },
    { "tar", "application/x-tar" },
    { "text", "text/plain" TEXT },
    { "tif", "image/tiff" },
    { "tiff", "image/tiff" },
    { "ts", "video/mp2t" },
    { "ttc", "font/collection" },
    { "ttf", "font/ttf" },
    { "txt", "text/plain" TEXT },
    { "vtt", "text/vtt" TEXT },
    { "wasm", "application/wasm" },
    { "wav", "audio/wav" },
    { "weba", "audio/webm" },
    { "webm", "video/webm" },
    { "webmanifest", "application/manifest+json" },
    { "webp", "image/webp" },
    { "woff", "font/woff" },
    { "woff2", "font/woff2" },
    { "xhtml", "application/xhtml+xml" },
    { "xls", "application/vnd.ms-excel" },
    { "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
    { "xml", "text/xml" TEXT },
    { "xz", "application/x-xz" },
    { "zip", "application/zip" },
    { "zst", "application/zstd" },
};

/* The bytes after the last dot of the name; none if there is no dot. */
static struct str extension_of(struct str file_name)
{
    size_t n = 0;
    while (n < file_name.n && file_name.p[file_name.n - 1 - n] != '.' && file_name.p[file_name.n - 1 - n] != '/')
        n++;
    if (n == file_name.n || file_name.p[file_name.n - 1 - n] != '.')
        return STR_NONE;
    return str_skip(file_name, file_name.n - n);
}

struct str mime_find(const struct map *own, struct str file_name)
{
    char lower[64];
    struct str extension = extension_of(file_name);
    if (own == NULL || own->n == 0 || extension.n == 0 || extension.n > sizeof lower)
        return mime_of(file_name);
    for (size_t i = 0; i < extension.n; i++)
        lower[i] = ascii_lower(extension.p[i]);
    const struct str *type = map_get(own, str_of(lower, extension.n));
    return type ? *type : mime_of(file_name);
}

struct str mime_of(struct str file_name)
{
    char extension[EXTENSION_MAX] = { 0 };
    struct str given = extension_of(file_name);
    size_t n = given.n, low = 0, high = sizeof types / sizeof types[0];
    if (n == 0 || n >= EXTENSION_MAX)
        return STR("application/octet-stream");
    for (size_t i = 0; i < n; i++) {
        extension[i] = ascii_lower(given.p[i]);
        if (extension[i] == '\0') /* would compare like the end of a shorter one */
            return STR("application/octet-stream");
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(extension, types[middle].extension, EXTENSION_MAX);
        if (order == 0)
            return str_c(types[middle].type);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return STR("application/octet-stream");
}

bool mime_is_dense(struct str type)
{
    static const struct str plain[] = { { "image/svg+xml", 13 }, { "image/x-icon", 12 }, { "image/bmp", 9 } };
    static const struct str dense[] = {
        { "image/", 6 }, { "video/", 6 }, { "audio/", 6 }, { "font/woff", 9 },
        { "application/gzip", 16 }, { "application/zip", 15 }, { "application/zstd", 16 },
        { "application/x-brotli", 20 }, { "application/x-bzip2", 19 }, { "application/x-xz", 16 },
        { "application/x-7z-compressed", 27 }, { "application/vnd.rar", 19 },
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (str_eq_nocase(type, plain[i]))
            return false;
    for (size_t i = 0; i < sizeof dense / sizeof dense[0]; i++)
        if (str_eq_nocase(str_take(type, dense[i].n), dense[i]))
            return true;
    return false;
}

bool mime_is_stored_coded(struct str file_name, struct str type)
{
    return str_eq_nocase(extension_of(file_name), STR("svgz")) && str_eq_nocase(type, STR("image/svg+xml"));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/str.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static const char STANDARD[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char URL_SAFE[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void text_hex(struct str *out, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < len; i++)
        str_addf(out, "%02x", b[i]);
}

static void
base64(struct str *out, const unsigned char *b, size_t len, const char *alphabet, bool pad)
{
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t word = (uint32_t)b[i] << 16;

        if (have > 1)
            word |= (uint32_t)b[i + 1] << 8;
        if (have > 2)
            word |= b[i + 2];
        for (size_t k = 0; k < 4; k++) {
            if (k <= have)
                str_add_char(out, alphabet[word >> (18 - 6 * k) & 63]);
            else if (pad)
                str_add_char(out, '=');
        }
    }
}

void text_base64(struct str *out, const void *bytes, size_t len)
{
    base64(out, bytes, len, STANDARD, true);
}

void text_base64url(struct str *out, const void *bytes, size_t len)
{
    base64(out, bytes, len, URL_SAFE, false);
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    if (c == '/' || c == '_')
        return 63;
    return -1;
}

int text_base64_decode(struct str *out, const char *text, struct err *e)
{
    size_t start = out->len, len = strlen(text), digits = len;
    uint32_t word = 0;

    while (digits > 0 && text[digits - 1] == '=' && len - digits < 2)
        digits--;
    if (digits % 4 == 1 || (len != digits && len % 4 != 0))
        return err_set(e, ERR_INVALID, "not base64: wrong length");
    for (size_t i = 0; i < digits; i++) {
        int digit = base64_digit(text[i]);

        if (digit < 0) {
            str_truncate(out, start);
            return err_set(e, ERR_INVALID, "not base64: wrong character");
        }
        word = word << 6 | (uint32_t)digit;
        if (i % 4 == 1)
            str_add_char(out, (char)(word >> 4));
        else if (i % 4 == 2)
            str_add_char(out, (char)(word >> 2));
        else if (i % 4 == 3)
            str_add_char(out, (char)word);
    }
    return 0;
}

static void percent(struct str *out, const char *text, const char *kept)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (isalnum(*p) || strchr(kept, *p))
            str_add_char(out, (char)*p);
        else
            str_addf(out, "%%%02X", *p);
    }
}

void text_percent(struct str *out, const char *text)
{
    percent(out, text, "-._~");
}

void text_percent_path(struct str *out, const char *path)
{
    percent(out, path, "-._~/");
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int text_percent_decode(struct str *out, const char *text, size_t len, bool plus, struct err *e)
{
    size_t start = out->len;
    char *to = str_reserve(out, len);

    for (size_t i = 0; i < len; i++) {
        int high, low;

        if (text[i] != '%' && text[i] != '\0') {
            *to++ = plus && text[i] == '+' ? ' ' : text[i];
            continue;
        }
        high = len - i > 2 ? hex_digit(text[i + 1]) : -1;
        low = len - i > 2 ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0)) {
            str_truncate(out, start);
            return err_set(e, ERR_INVALID, "broken percent-encoding");
        }
        *to++ = (char)(high << 4 | low);
        i += 2;
    }
    *to = '\0';
    out->len = (size_t)(to - out->data);
    return 0;
}

bool text_is_utf8(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text, *end = s + len;

    while (s < end) {
        size_t more;
        uint32_t c;

        if (*s < 0x80) {
            s++;
            continue;
        }
        if (*s >= 0xc2 && *s <= 0xdf)
            more = 1;
        else if (*s >= 0xe0 && *s <= 0xef)
            more = 2;
        else if (*s >= 0xf0 && *s <= 0xf4)
            more = 3;
        else
            return false;
        if ((size_t)(end - s) <= more)
            return false;
        c = *s & (0x3fu >> more);
        for (size_t k = 1; k <= more; k++) {
            if ((s[k] & 0xc0) != 0x80)
                return false;
            c = c << 6 | (s[k] & 0x3f);
        }
        if ((more == 2 && c < 0x800) || (more == 3 && (c < 0x10000 || c > 0x10ffff)) ||
            (c >= 0xd800 && c <= 0xdfff))
            return false;
        s += more + 1;
    }
    return true;
}

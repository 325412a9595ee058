/* SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/rate.h"

#include "base/mem.h"
#include "base/str.h"

#include <math.h>

enum bert_rate_mode bert_rate_mode_of(const char *name)
{
    static const char *const names[] = {
        [BERT_RATE_NONE] = "None",         [BERT_RATE_COSINE] = "Cosine",
        [BERT_RATE_CONSTANT] = "Constant", [BERT_RATE_LINEAR] = "Linear",
        [BERT_RATE_POLY] = "Poly",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_equal(names[i], name))
            return (enum bert_rate_mode)i;
    return BERT_RATE_NONE;
}

static double behind_warmup(const struct bert_rate *r, double x)
{
    double left = x < 1 ? 1 - x : 0;

    switch (r->mode) {
    case BERT_RATE_COSINE:
        return (1 + cos(M_PI * x)) / 2;
    case BERT_RATE_LINEAR:
        return r->warmup < 1 ? left / (1 - r->warmup) : 0;
    case BERT_RATE_POLY:
        return sqrt(left);
    case BERT_RATE_NONE:
    case BERT_RATE_CONSTANT:
        break;
    }
    return 1;
}

double bert_rate_at(const struct bert_rate *rate, int64_t step)
{
    double x = rate->steps > 0 ? (double)(step + 1) / (double)rate->steps : 1;

    if (rate->mode != BERT_RATE_NONE && x < rate->warmup)
        return rate->most * x / rate->warmup;
    return rate->most * behind_warmup(rate, x);
}

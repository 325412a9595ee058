/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/bert.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/graph/diff.h"
#include "train/graph/fuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void names_tell_sizes(void **state)
{
    static const struct {
        const char *name;
        struct bert_size size;
    } rows[] = {
        {"/model/bert_L-24_H-1024_A-16_V_30528_optimized_layer_norm",
         {24, 1024, 16, 30528, 512, 4096, 0.1F}},
        {"bert_L-24_H-1024_A-16_V_30528.onnx", {24, 1024, 16, 30528, 512, 4096, 0.1F}},
        {"a/b-L-9/bert-tiny-uncased_L_3_H_128_A_2_V_30528_S_512_Dp_0.1_optimized_layer_norm",
         {3, 128, 2, 30528, 512, 512, 0.1F}},
        {"bert-large", {24, 1024, 16, 30528, 512, 4096, 0.1F}},
        {"BERT_Base_uncased", {12, 768, 12, 30528, 512, 3072, 0.1F}},
        {"bert-tiny", {2, 128, 2, 30528, 512, 512, 0.1F}},
        {"bert-base_Dp_0.2.onnx", {12, 768, 12, 30528, 512, 3072, 0.2F}},
        {"bert-mini_V_1000_Dp_0", {4, 256, 4, 1000, 512, 1024, 0}},
        {"x_L-1_H-8_A-2_I-24_S-16_V-50", {1, 8, 2, 50, 16, 24, 0.1F}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct bert_size s, want = rows[i].size;
        struct err e;

        if (bert_size_parse(rows[i].name, &s, &e) < 0)
            fail_msg("%s: %s", rows[i].name, e.msg);
        assert_int_equal(s.layers, want.layers);
        assert_int_equal(s.width, want.width);
        assert_int_equal(s.heads, want.heads);
        assert_int_equal(s.vocabulary, want.vocabulary);
        assert_int_equal(s.positions, want.positions);
        assert_int_equal(s.between, want.between);
        assert_float_equal(s.dropout, want.dropout, 1e-9);
    }
}

static void wrong_names_are_refused_and_say_why(void **state)
{
    static const struct {
        const char *name, *says;
    } rows[] = {
        {"bert-tinny", "did you mean \"bert-tiny\"?"},
        {"resnet50", "bert_L-24_H-1024_A-16_V_30528"},
        {"bert_L-2_H-128", "no BERT is called"},
        {"bert_L-2_H-100_A-3", "cannot be cut into 3 heads"},
        {"bert_L-0_H-128_A-2", "L in"},
        {"bert_L-99999999999999999999_H-128_A-2", "L in"},
        {"bert_L-2_H-128_A-2_V_10x", "V in"},
        {"bert-tiny_Dp_1.5", "Dp in"},
        {"", "no BERT is called"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct bert_size s;
        struct err e;

        assert_int_equal(bert_size_parse(rows[i].name, &s, &e), -1);
        if (!strstr(e.msg, rows[i].says))
            fail_msg("%s: %s", rows[i].name, e.msg);
    }
}

static struct graph *graph_of(const char *name, enum graph_mode mode, struct bert_options o)
{
    struct bert_size size;
    struct graph *g;

    assert_int_equal(bert_size_parse(name, &size, NULL), 0);
    assert_int_equal(bert_graph(&size, mode, &o, &g, NULL), 0);
    return g;
}

/* Of HuggingFace's BertForPreTraining with the same sizes, the tied decoder counted once. */
static void it_has_as_many_parameters_as_elsewhere(void **state)
{
    static const struct {
        const char *name;
        int64_t params;
    } rows[] = {
        {"bert-base_V_30522", 110106428},
        {"bert-large_V_30522", 336226108},
        {"bert-tiny_V_30522", 4433468},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct graph *g =
            graph_of(rows[i].name, GRAPH_TRAIN, (struct bert_options){2, 128, 20});

        if (graph_param_count(g) != rows[i].params)
            fail_msg("%s has %lld", rows[i].name, (long long)graph_param_count(g));
        graph_free(g);
    }
}

static void biases_and_layernorms_do_not_decay(void **state)
{
    struct graph *g = graph_of("bert-tiny", GRAPH_TRAIN, (struct bert_options){1, 8, 2});

    (void)state;
    assert_true(g->tensors[graph_find(g, "bert.pooler.dense.weight")].decays);
    assert_false(g->tensors[graph_find(g, "bert.pooler.dense.bias")].decays);
    assert_false(g->tensors[graph_find(g, "cls.predictions.bias")].decays);
    assert_false(g->tensors[graph_find(g, "bert.embeddings.LayerNorm.weight")].decays);
    assert_true(g->tensors[graph_find(g, "bert.embeddings.word_embeddings.weight")].decays);
    graph_free(g);
}

/* The forward pass with one layer, fused as a CPU asks for it: kind, name, what is fused into
 * it, shape of the first output. */
static const char golden[] = "embed bert.embeddings 8x8\n"
                             "layernorm bert.embeddings.LayerNorm 8x8\n"
                             "dropout bert.embeddings.dropout rate 0.1 8x8\n"
                             "linear layer.attention.self.qkv 8x24\n"
                             "attention layer.attention.self 8x8\n"
                             "linear layer.attention.output.dense 8x8\n"
                             "dropout layer.attention.output.dropout rate 0.1 add 8x8\n"
                             "layernorm layer.attention.output.LayerNorm 8x8\n"
                             "linear layer.intermediate.dense gelu 8x24\n"
                             "linear layer.output.dense 8x8\n"
                             "dropout layer.output.dropout rate 0.1 add 8x8\n"
                             "layernorm layer.output.LayerNorm 8x8\n"
                             "gather_rows gather 6x8\n"
                             "linear cls.predictions.transform.dense gelu 6x8\n"
                             "layernorm cls.predictions.transform.LayerNorm 6x8\n"
                             "linear cls.predictions 6x50\n"
                             "xent xent scalar\n"
                             "gather_rows gather 2x8\n"
                             "linear bert.pooler.dense tanh 2x8\n"
                             "linear cls.seq_relationship 2x2\n"
                             "xent xent scalar\n"
                             "weighted_sum loss scalar\n";

static void add_line(struct str *out, const struct graph *g, const struct op *op)
{
    static const char layer[] = "bert.encoder.layer.0";
    const struct tensor *y = &g->tensors[op->out[0]];
    bool is_layer = str_starts(op->name, layer);

    str_addf(out, "%s %s%s", op_info(op->kind)->name, is_layer ? "layer" : "",
             op->name + (is_layer ? strlen(layer) : 0));
    if (op->kind == OP_LINEAR && op->attrs.linear.act != ACT_NONE)
        str_add(out, op->attrs.linear.act == ACT_GELU ? " gelu" : " tanh");
    if (op->kind == OP_DROPOUT)
        str_addf(out, " rate %g%s", (double)op->attrs.dropout.rate,
                 op->in_count > 1 ? " add" : "");
    if (y->dims == 2)
        str_addf(out, " %lldx%lld\n", (long long)y->dim[0], (long long)y->dim[1]);
    else
        str_add(out, " scalar\n");
}

static void the_program_is_the_one_we_know(void **state)
{
    struct graph *g =
        graph_of("x_L-1_H-8_A-2_I-24_S-16_V-50", GRAPH_TRAIN, (struct bert_options){2, 4, 3});
    auto_str text = {0};

    (void)state;
    graph_fuse(g, FUSE_LINEAR_ACT | FUSE_DROPOUT_ADD | FUSE_ADD_LAYERNORM);
    for (int i = 0; i < g->op_count; i++)
        add_line(&text, g, &g->ops[i]);
    assert_string_equal(str_text(&text), golden);
    graph_free(g);
}

static void it_can_be_trained_and_evaluated(void **state)
{
    struct graph *g = graph_of("bert-mini", GRAPH_TRAIN, (struct bert_options){2, 16, 3});
    int sums = 0;

    (void)state;
    graph_fuse(g, ~0U);
    assert_int_equal(graph_differentiate(g, NULL), 0);
    /* The word embeddings get a gradient from both ends. */
    for (int i = 0; i < g->op_count; i++)
        sums += g->ops[i].kind == OP_SUM &&
                g->ops[i].out[0] ==
                    g->tensors[graph_find(g, "bert.embeddings.word_embeddings.weight")].grad;
    assert_int_equal(sums, 1);
    graph_free(g);
    g = graph_of("bert-mini", GRAPH_EVAL, (struct bert_options){2, 16, 3});
    for (int i = 0; i < g->op_count; i++)
        assert_int_not_equal(g->ops[i].kind, OP_DROPOUT);
    graph_free(g);
}

static void a_sequence_longer_than_the_positions_is_refused(void **state)
{
    struct bert_size size;
    struct graph *g;
    struct err e;

    (void)state;
    assert_int_equal(bert_size_parse("bert-tiny_S_16", &size, NULL), 0);
    assert_int_equal(bert_graph(&size, GRAPH_TRAIN, &(struct bert_options){1, 17, 2}, &g, &e),
                     -1);
    assert_non_null(strstr(e.msg, "16 positions"));
    assert_int_equal(
        bert_graph(&size, GRAPH_TRAIN, &(struct bert_options){1 << 30, 16, 2}, &g, &e), -1);
    assert_non_null(strstr(e.msg, "too many"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell_sizes),
        cmocka_unit_test(wrong_names_are_refused_and_say_why),
        cmocka_unit_test(it_has_as_many_parameters_as_elsewhere),
        cmocka_unit_test(biases_and_layernorms_do_not_decay),
        cmocka_unit_test(the_program_is_the_one_we_know),
        cmocka_unit_test(it_can_be_trained_and_evaluated),
        cmocka_unit_test(a_sequence_longer_than_the_positions_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

"""What a worker says of what it cannot do."""

from compare.workers.refusals import MOST, sentence_of


def test_a_long_reason_keeps_its_end():
    where = "Graph execution error:\n\nDetected at node BiasAdd defined at (most recent call last):\n"
    where += '  File "/a/long/path.py", line 1, in call\n' * 20
    sentence = sentence_of(RuntimeError(where + "the bias has 3 channels, the images 4\n\t [[{{node BiasAdd}}]] [Op:__inference_step_12]"))
    assert len(sentence) == MOST and sentence.startswith("Graph execution error: Detected at node BiasAdd") and " ... " in sentence
    assert sentence.endswith("the bias has 3 channels, the images 4 [[{{node BiasAdd}}]] [Op:__inference_step_12]")


def test_a_short_reason_is_whole_and_an_empty_one_has_a_name():
    assert sentence_of(ValueError("a  b\nc")) == "a b c" and sentence_of(ValueError("x" * MOST)) == "x" * MOST
    assert sentence_of(MemoryError()) == "MemoryError"

/* A frame evaluation function of PEP 523 that calls the interpreter's own. */

typedef void *evaluate(void *thread, void *frame, int throwing);

evaluate *evaluator_next;
unsigned long evaluator_calls;
unsigned long evaluator_depth;

/* Code after the call prevents a tail call: this function has a frame while Python runs. */
void *evaluator(void *thread, void *frame, int throwing) {
    evaluator_depth++;
    void *result = evaluator_next(thread, frame, throwing);
    evaluator_depth--;
    evaluator_calls++;
    return result;
}

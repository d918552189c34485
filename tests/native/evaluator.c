/* A frame evaluation function of PEP 523 that leaves the work to the interpreter's own. */

typedef void *evaluate(void *thread, void *frame, int throwing);

evaluate *evaluator_next;
unsigned long evaluator_calls;
unsigned long evaluator_depth;

/* What follows the call keeps it from being a jump: this function has a frame while Python runs. */
void *evaluator(void *thread, void *frame, int throwing) {
    evaluator_depth++;
    void *result = evaluator_next(thread, frame, throwing);
    evaluator_depth--;
    evaluator_calls++;
    return result;
}

/* Initializes Python, runs a program and finalizes it, repeatedly: argv[2] times. */
#include <Python.h>

int main(int argc, char **argv)
{
    for (int life = 0; argc == 3 && life < atoi(argv[2]); life++) {
        Py_Initialize();
        if (PyRun_SimpleString(argv[1]) != 0)
            return 3;
        if (Py_FinalizeEx() != 0)
            return 4;
    }
    return 0;
}

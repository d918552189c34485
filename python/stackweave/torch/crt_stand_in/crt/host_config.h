// In the place of a header of CUDA's compiler, which the packages of its runtime include but do not have. It checks the
// host's compiler: nothing that is needed here. Found only where there is no other.
#pragma once

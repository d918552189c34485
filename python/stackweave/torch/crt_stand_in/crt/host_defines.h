// In the place of a header of CUDA's compiler, which the packages of its runtime include but do not have: what its words
// mean to the host's compiler. Found only where there is no other.
#pragma once

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDART_CB

#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __no_return__ __attribute__((noreturn))

#define __constant__
#define __device__
#define __global__
#define __grid_constant__
#define __host__
#define __managed__
#define __shared__

#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
#define __location__(place)
#define __specialization_static static
#define __nv_pure__

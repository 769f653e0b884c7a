# Read by the build of HiGHS (see .cargo/config.toml): compile in groups, leave its tests out.
set(BUILD_TESTING OFF CACHE BOOL "" FORCE)
set(CMAKE_UNITY_BUILD ON CACHE BOOL "" FORCE)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8 CACHE STRING "" FORCE)

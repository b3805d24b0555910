# The CMakeLists.txt of the example: all that a project needs to embed the runtime.
cmake_minimum_required(VERSION 3.25)
project(Embed LANGUAGES CXX)
find_package(Strata REQUIRED)
add_executable(embed Embed.cpp)
target_link_libraries(embed PRIVATE Strata::Runtime)

// The host without Python: worker threads allocate and free for some seconds, then every captured stack is
// compared with the path that its worker took. `native_host SECONDS [THREADS]`
#include "device_allocator.hpp"
#include "stackweave.hpp"
#include "workers.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// "host::(anonymous namespace)::follow(host::WorkItem&, unsigned long, unsigned int)" is "host::follow".
std::string plain(std::string name) {
    static const std::string unnamed = "(anonymous namespace)::";
    for (auto place = name.find(unnamed); place != std::string::npos; place = name.find(unnamed))
        name.erase(place, unnamed.size());
    return name.substr(0, name.find('('));
}

struct Found {
    std::vector<std::vector<std::string>> stacks;
};

int add(void *data, size_t stack, size_t, const stackweave_frame *frame) {
    const std::string name = plain(frame->name);
    if (!frame->is_inlined && name.compare(0, 6, "host::") == 0 && name.find('{') == std::string::npos &&
        name.find("lambda") == std::string::npos)
        static_cast<Found *>(data)->stacks[stack].push_back(name);
    return 0;
}

std::string joined(const std::vector<std::string> &names) {
    std::string text;
    for (const std::string &name : names)
        text += "\n    " + name;
    return text;
}

// Returns the number of stacks that differ from their worker's path.
std::size_t wrong_stacks(const std::map<host::Witness, std::uint64_t> &witnesses) {
    std::vector<stackweave_stack> stacks;
    for (const auto &[witness, count] : witnesses)
        stacks.push_back(witness.stack);
    Found found{std::vector<std::vector<std::string>>(stacks.size())};
    stackweave::check(stackweave_resolve(stacks.data(), stacks.size(), add, &found));
    std::size_t index = 0, wrong = 0;
    for (const auto &[witness, count] : witnesses) {
        const auto expected = host::functions_of(witness.truth);
        const auto &names = found.stacks[index++];
        if (names != expected && wrong++ < 3)
            std::fprintf(stderr, "wrong: %s\n  expected: %s\n", joined(names).c_str(), joined(expected).c_str());
    }
    return wrong;
}

} // namespace

int main(int count, char **arguments) {
    const double seconds = count > 1 ? std::atof(arguments[1]) : 2;
    const unsigned threads = count > 2 ? static_cast<unsigned>(std::atoi(arguments[2])) : 4;
    host::Workers workers;
    workers.start(threads);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        // Compare while the workers run.
        if (wrong_stacks(host::device_allocator().witnesses()) != 0)
            break;
    }
    const auto blocks = workers.stop();
    const auto witnesses = host::device_allocator().witnesses();
    const auto wrong = wrong_stacks(witnesses);
    const auto stats = stackweave::stats();
    std::printf("%llu blocks, %zu distinct stacks, %zu wrong, %llu incomplete\n",
                static_cast<unsigned long long>(blocks), witnesses.size(), wrong,
                static_cast<unsigned long long>(stats.incomplete_native));
    return blocks > 0 && wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

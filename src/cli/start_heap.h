// Small objects of a process that exists for one start.
#pragma once

namespace heddle::cli {

// From here on `new` takes objects of up to 1 KiB from lists of the calling thread, by size, without a lock;
// `delete` knows what is from there, and who deletes keeps it for its next objects of that size, and a later
// thread what an ended one kept. Nothing goes back to the system: for processes that end soon. To be called
// while the process has one thread. False, and nothing changes, where address space is limited or a sanitizer
// looks after memory.
bool use_start_heap();

}  // namespace heddle::cli

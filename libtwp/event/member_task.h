// MemberTask, MemberTimer: for an object that needs more than one Task or Timer, and so cannot just derive from it.
#pragma once

#include "base/timer_wheel.h"
#include "event/worker.h"

namespace twp {
namespace detail {

template <class F>
struct MemberOwner;
template <class T>
struct MemberOwner<void (T::*)() noexcept> {
  using Type = T;
};

}  // namespace detail

/// A task that calls `F`, a member function `void f() noexcept` of the object it is embedded in:
///
///   MemberTask<&Session::flush> flush_task_{*this};
///
/// `F` is part of the type, so the call through Task::run() is the only indirect one: as if written by hand. Declare it
/// after the function that it names. Owner and task live and die together; an owner never moves.
template <auto F>
class MemberTask final : public Task {
 public:
  using Owner = typename detail::MemberOwner<decltype(F)>::Type;
  explicit MemberTask(Owner& owner) noexcept : owner_(owner) {}
  void run() noexcept override { (owner_.*F)(); }

 private:
  Owner& owner_;
};

/// The same for a timer.
template <auto F>
class MemberTimer final : public Timer {
 public:
  using Owner = typename detail::MemberOwner<decltype(F)>::Type;
  explicit MemberTimer(Owner& owner) noexcept : owner_(owner) {}
  void on_timer() noexcept override { (owner_.*F)(); }

 private:
  Owner& owner_;
};

}  // namespace twp

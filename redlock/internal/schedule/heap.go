package schedule

import (
	"container/heap"
	"time"
)

// due records when a task is due in one heap, and the task's position there.
type due struct {
	time  time.Time
	index int // position in the heap, from 1; 0: not in it
}

// timerHeap orders tasks by one of their times. Its exported methods implement heap.Interface.
type timerHeap[T any] struct {
	tasks []T
	due   func(T) *due
}

func (h *timerHeap[T]) set(task T, t time.Time) {
	at := h.due(task)
	at.time = t
	if at.index == 0 {
		heap.Push(h, task)
	} else {
		heap.Fix(h, at.index-1)
	}
}

func (h *timerHeap[T]) remove(task T) {
	if at := h.due(task); at.index > 0 {
		heap.Remove(h, at.index-1)
	}
}

// earliest returns when the first task is due; zero if there is none.
func (h *timerHeap[T]) earliest() time.Time {
	if len(h.tasks) == 0 {
		return time.Time{}
	}
	return h.due(h.tasks[0]).time
}

// anyDue reports whether a task is due at now.
func (h *timerHeap[T]) anyDue(now time.Time) bool {
	return len(h.tasks) > 0 && !now.Before(h.earliest())
}

func (h *timerHeap[T]) Len() int { return len(h.tasks) }

func (h *timerHeap[T]) Less(i, j int) bool {
	return h.due(h.tasks[i]).time.Before(h.due(h.tasks[j]).time)
}

func (h *timerHeap[T]) Swap(i, j int) {
	h.tasks[i], h.tasks[j] = h.tasks[j], h.tasks[i]
	h.due(h.tasks[i]).index, h.due(h.tasks[j]).index = i+1, j+1
}

func (h *timerHeap[T]) Push(x any) {
	h.tasks = append(h.tasks, x.(T))
	h.due(x.(T)).index = len(h.tasks)
}

func (h *timerHeap[T]) Pop() any {
	last := len(h.tasks) - 1
	task := h.tasks[last]
	clear(h.tasks[last:])
	h.tasks = h.tasks[:last]
	h.due(task).index = 0
	return task
}

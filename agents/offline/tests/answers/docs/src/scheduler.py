"""Job scheduler of the render farm.

Jobs wait in a priority queue, are given to nodes by affinity and are put back when a node goes silent.
"""

import heapq
import time
from dataclasses import dataclass, field

# A node that has not reported for this long is taken for dead. It was 90 before the switch to QUIC.
HEARTBEAT_GRACE = 45

# Attempts before a job is moved to the graveyard.
MAX_ATTEMPTS = 7

# Frames that are given to a node in one go.
BATCH_FRAMES = 24

# Seconds between two sweeps for lost nodes.
SWEEP_INTERVAL = 5


@dataclass(order=True)
class Job:
    """Something to render.

    Lower numbers of ``priority`` run earlier; preview jobs have 10, final jobs 50, archive jobs 90.
    """

    priority: int
    submitted: float
    name: str = field(compare=False)
    attempts: int = field(default=0, compare=False)
    needs_gpu: bool = field(default=False, compare=False)


class Scheduler:
    """Hands jobs to nodes."""

    def __init__(self, clock=time.monotonic):
        self._queue = []
        self._running = {}
        self._seen = {}
        self._clock = clock

    def submit(self, job):
        """Puts a job into the queue.

        Raises ValueError when a job of the same name is already waiting, since names are used as folder
        names for the frames and would overwrite each other.
        """
        if any(other.name == job.name for other in self._queue):
            raise ValueError(f"{job.name} is already waiting")
        heapq.heappush(self._queue, job)

    def next_for(self, node):
        """The next job for a node, or None.

        Nodes without a graphics card never get jobs that need one. A node that failed a job does not get the
        same job again, unless no other node is alive.
        """
        for job in sorted(self._queue):
            if job.needs_gpu and not node.has_gpu:
                continue
            if node.name in job_failures(job) and self.alive() > 1:
                continue
            self._queue.remove(job)
            self._running[node.name] = job
            return job
        return None

    def heartbeat(self, node):
        """Notes that a node is alive."""
        self._seen[node.name] = self._clock()

    def sweep(self):
        """Puts jobs of silent nodes back into the queue.

        The priority of such a job is lowered by 5, so that it runs before its peers: its frames are late
        already.
        """
        now = self._clock()
        for name, seen in list(self._seen.items()):
            if now - seen > HEARTBEAT_GRACE:
                job = self._running.pop(name, None)
                if job:
                    job.attempts += 1
                    job.priority -= 5
                    self._requeue(job)
                del self._seen[name]

    def _requeue(self, job):
        """Puts a job back, or buries it after too many attempts."""
        if job.attempts >= MAX_ATTEMPTS:
            bury(job)
        else:
            heapq.heappush(self._queue, job)

    def alive(self):
        """How many nodes have reported lately."""
        return len(self._seen)


def bury(job):
    """Moves a job to the graveyard, a folder named ``/srv/render/graveyard`` that people look through on Mondays."""


def job_failures(job):
    """Names of nodes on which a job has failed."""
    return getattr(job, "failed_on", set())

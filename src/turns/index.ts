/**
 * Waiting in turn, so that one client cannot occupy the process: the requests of one connection are served one after the
 * other, and CPU work in the thread pool goes through one bounded queue.
 */

export { CONNECTION_LIMITS, serveInTurn } from './connection.ts'
export { runInThreadPool, ThreadPoolFull } from './thread-pool.ts'

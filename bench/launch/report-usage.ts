/** Preloaded into the servers of `bench/launch.ts`: reports CPU time and memory on request. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

process.on('message', (message: 'usage' | 'heap') => {
  if (message === 'heap') collect()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  process.send?.({ cpu: user + system, rss, heapUsed })
})

import type { Output } from './command.ts'

/** A person begins to wonder after two seconds. */
const PATIENCE_MS = 2000
const TICK_MS = 500

/** Shows on a terminal that the work goes on, and for how long it has. */
export async function withTicker<T>(
  busy: string | undefined,
  output: Output,
  work: () => Promise<T>,
): Promise<T> {
  if (busy === undefined || output.isTTY !== true) return work()
  const started = performance.now()
  let isShown = false
  const draw = (text: string) => (output.draw ? output.draw(text) : output.write(text))
  const timer = setInterval(() => {
    const ms = performance.now() - started
    if (ms < PATIENCE_MS) return
    isShown = true
    draw(`\r${busy}: ${Math.floor(ms / 1000)} s\x1b[K`)
  }, TICK_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
    if (isShown) draw('\r\x1b[K')
  }
}

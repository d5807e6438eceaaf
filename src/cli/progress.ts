import { formatCount } from '../core/index.ts'
import type { Output } from './command.ts'

/** How far a command is. */
export interface Progressed {
  readonly read: number
  readonly total: number
  readonly resources: number
}

export interface Progress {
  show(progress: Progressed): void
  /** What it waits for. */
  say(text: string): void
  end(): void
}

const everyMs = { terminal: 100, log: 5000 }

export function createProgress(
  output: Output,
  clock: () => number = performance.now.bind(performance),
): Progress {
  const terminal = output.isTTY === true
  const every = terminal ? everyMs.terminal : everyMs.log
  const started = clock()
  let shownAt = started
  const draw = (text: string) => (output.draw ? output.draw(text) : output.write(text))
  const columns = output.columns || 80
  const write = (text: string, line: string) =>
    terminal ? draw(`\r${line}\x1b[K`) : output.write(`${text}\n`)
  const isEarly = (now: number) => {
    if (now - shownAt < every) return true
    shownAt = now
    return false
  }
  return {
    show(progress) {
      const now = clock()
      if (isEarly(now)) return
      const text = formatProgress(progress, now - started)
      write(text, formatBar(progress, text, columns))
    },
    say(text) {
      if (!isEarly(clock())) write(text, text.slice(0, columns - 1))
    },
    end() {
      if (terminal && shownAt > started) draw('\r\x1b[K')
    },
  }
}

function formatProgress({ read, total, resources }: Progressed, ms: number): string {
  const percent = total === 0 ? 100 : Math.min(100, Math.floor((read / total) * 100))
  const rate = Math.round(resources / Math.max(0.001, ms / 1000))
  return `${percent} %  ${formatCount(resources, 'resource')}  ${rate.toLocaleString('en')}/s`
}

function formatBar({ read, total }: Progressed, text: string, columns: number): string {
  const width = Math.min(40, columns - text.length - 5)
  if (width < 10) return text
  const full = total === 0 ? width : Math.min(width, Math.floor((read / total) * width))
  return `[${'#'.repeat(full)}${'-'.repeat(width - full)}] ${text}`
}

import type { ImportProgress } from '../../backends/sqlite/import/index.ts'
import type { Output } from '../command.ts'
import { counted } from './report-text.ts'

export interface Progress {
  show(progress: ImportProgress): void
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
  return {
    show(progress) {
      const now = clock()
      if (now - shownAt < every) return
      shownAt = now
      const text = progressText(progress, now - started)
      output.write(terminal ? `\r${barText(progress, text, output.columns || 80)}\x1b[K` : `${text}\n`)
    },
    end() {
      if (terminal && shownAt > started) output.write('\r\x1b[K')
    },
  }
}

function progressText({ read, total, resources }: ImportProgress, ms: number): string {
  const percent = total === 0 ? 100 : Math.min(100, Math.floor((read / total) * 100))
  const rate = Math.round(resources / Math.max(0.001, ms / 1000))
  return `${percent} %  ${counted(resources, 'resource')}  ${rate.toLocaleString('en')}/s`
}

function barText({ read, total }: ImportProgress, text: string, columns: number): string {
  const width = Math.min(40, columns - text.length - 5)
  if (width < 10) return text
  const full = total === 0 ? width : Math.min(width, Math.floor((read / total) * width))
  return `[${'#'.repeat(full)}${'-'.repeat(width - full)}] ${text}`
}

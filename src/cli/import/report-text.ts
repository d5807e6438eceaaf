import type { ImportProgress, ImportReport, Reason, Unreadable } from '../../backends/sqlite/import/index.ts'
import type { Output } from '../command.ts'

const reasonsShown = 20

/** Names files, lines and elements, never their values. */
export function formatReport(report: ImportReport, skipped: number, ms: number): string {
  const { created, updated, unchanged, refused, notResources } = report
  const all = created + updated + unchanged + refused
  const rows: readonly (readonly [string, number])[] = [
    ['created', created],
    ['updated', updated],
    ['unchanged', unchanged],
    ['refused', refused],
  ]
  const wide = all.toLocaleString('en').length
  return [
    `Read ${counted(all - notResources, 'resource')}${formatNotResources(notResources)} from ${counted(report.files, 'file')} in ${(ms / 1000).toFixed(1)} s`,
    ...rows.map(([name, count]) => `  ${name.padEnd(9)}  ${count.toLocaleString('en').padStart(wide)}`),
    ...reasonLines(report.reasons),
    ...unreadableLines(report.unreadable),
    ...noteLines(report.unresolved, skipped),
    '',
  ].join('\n')
}

function formatNotResources(count: number): string {
  if (count === 0) return ''
  return count === 1
    ? ', and 1 line or entry that is not a resource,'
    : `, and ${count.toLocaleString('en')} lines or entries that are not resources,`
}

export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}

function reasonLines(reasons: readonly Reason[]): string[] {
  if (reasons.length === 0) return []
  const rest = reasons.slice(reasonsShown).reduce((sum, { count }) => sum + count, 0)
  return [
    'Refused, by reason:',
    ...reasons
      .slice(0, reasonsShown)
      .map(reason => `  ${reason.count.toLocaleString('en')} x ${reason.text}${places(reason)}`),
    ...(rest === 0
      ? []
      : [`  ${rest.toLocaleString('en')} x for ${counted(reasons.length - reasonsShown, 'other reason')}`]),
  ]
}

function places({ places: first, count }: Reason): string {
  return ` (${first.join(', ')}${count > first.length ? ', …' : ''})`
}

function unreadableLines(unreadable: readonly Unreadable[]): string[] {
  return unreadable.map(({ file, line, reason }) =>
    line === undefined || line === 0
      ? `Cannot read ${file}: ${reason}`
      : `Cannot read ${file} after line ${line}: ${reason}`,
  )
}

function noteLines(unresolved: number, skipped: number): string[] {
  return [
    ...(unresolved === 0
      ? []
      : [
          `Kept ${counted(unresolved, 'conditional reference')} as written: no resource or several resources match`,
        ]),
    ...(skipped === 0
      ? []
      : [`Skipped ${counted(skipped, 'file')} not named .ndjson, .jsonl or .json (or these with .gz)`]),
  ]
}

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

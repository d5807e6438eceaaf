import { setImmediate as yieldTurn } from 'node:timers/promises'
import { openEventIds, type TrailPosition } from '../../../audit/index.ts'
import { CSV_TYPE, formatCsvRow, formatDate, formatTime } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { AuthUser } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type Actors, findActors } from '../parts/access-log/actors.ts'
import { findPerson, readDays } from '../parts/access-log/read.ts'
import type { AccessLogView } from '../parts/access-log/view.ts'
import { describeByApp, listApps } from '../parts/access-log/visit-rows.ts'
import { ACCESS_KINDS, classify, type Visit } from '../parts/access-log/visits.ts'
import { describeLists, describeVisit } from '../parts/access-log/words.ts'
import type { WhoseRecord } from '../parts/whose.ts'

/** One visit, in words. */
interface Entry {
  readonly from: string
  readonly to: string
  readonly who: string
  readonly role: string | undefined
  readonly apps: string
  readonly kind: string
  readonly what: string
}

const HEADS = ['Date', 'From', 'To', 'Who', 'Role', 'Apps', 'Kind', 'What'] as const

interface Format {
  readonly type: string
  readonly head: string
  readonly end: string
  /** Says at the end that there are older entries. */
  formatNote(text: string, isFirst: boolean): string
  format(entry: Entry, options: { readonly isFirst: boolean; readonly zone: string }): string
}

/** The byte order mark tells spreadsheets that the text is UTF-8. */
export const DOWNLOADS = {
  csv: {
    type: CSV_TYPE,
    head: `\ufeff${formatCsvRow(HEADS)}`,
    end: '',
    formatNote: text => formatCsvRow([text]),
    format: ({ from, to, who, role, apps, kind, what }, { zone }) =>
      formatCsvRow([
        formatDate(from, zone),
        formatTime(from, { zone, withZone: true }),
        formatTime(to, { zone, withZone: true }),
        who,
        role,
        apps,
        kind,
        what,
      ]),
  },
  json: {
    type: 'application/json; charset=utf-8',
    head: '[',
    end: '\n]\n',
    formatNote: (text, isFirst) => `${isFirst ? '' : ','}\n${JSON.stringify({ incomplete: text })}`,
    format: (entry, { isFirst }) => `${isFirst ? '' : ','}\n${JSON.stringify(entry)}`,
  },
} as const satisfies Record<string, Format>

export type DownloadFormat = keyof typeof DOWNLOADS

const CUT =
  'Incomplete: older entries are not in this file. To download them, choose an earlier day under “To”.'

/** Visits that are written without a pause. */
const AT_ONCE = 250

/** The users of the downloads that are running. */
const running: string[] = []

/**
 * The visits of a filter, newest first, in parts. Undefined if too many downloads are running, of this user or in all: a user
 * who reads slowly must not keep others from theirs.
 */
export function writeVisits(
  context: AuthContext,
  user: AuthUser,
  options: { readonly view: AccessLogView; readonly whose: WhoseRecord; readonly format: DownloadFormat },
): AsyncGenerator<string> | undefined {
  const ofUser = running.filter(id => id === user.id).length
  if (ofUser >= LIMITS.accessDownloadsPerUser || running.length >= LIMITS.accessDownloads) return undefined
  return generate(context, user, options)
}

async function* generate(
  context: AuthContext,
  user: AuthUser,
  { view, whose, format }: NonNullable<Parameters<typeof writeVisits>[2]>,
): AsyncGenerator<string> {
  running.push(user.id)
  try {
    const { head, end, format: formatEntry, formatNote }: Format = DOWNLOADS[format]
    yield head
    const person = await findPerson(context, await openEventIds(context.store), view)
    let isFirst = true
    let after: TrailPosition | undefined
    for (let left: number = LIMITS.exportedRecords; ; ) {
      if (left <= 0) {
        yield formatNote(CUT, isFirst)
        break
      }
      const { days, older } = await readDays(context, user, view, { person, after, isUnpaged: true })
      const visits = days.flatMap(day => [...day.visits, ...day.lists])
      const actors = await findActors(context, user.id, visits.flat())
      for (let from = 0; from < visits.length; from += AT_ONCE) {
        // SQLite answers at once: without pauses, a long log would block every other request.
        await yieldTurn()
        let text = ''
        for (const visit of visits.slice(from, from + AT_ONCE)) {
          text += formatEntry(toEntry(visit, actors, whose), { isFirst, zone: view.zone })
          isFirst = false
          left -= visit.length
        }
        yield text
      }
      if (!older) break
      after = older
      await yieldTurn()
    }
    yield end
  } finally {
    running.splice(running.indexOf(user.id), 1)
  }
}

function toEntry(visit: Visit, actors: Actors, whose: WhoseRecord): Entry {
  const { name, detail } = actors.describe(visit[0])
  const apps = listApps(visit, actors)
  const kind = visit.map(classify).find(it => it === 'changed') ?? classify(visit[0])
  return {
    from: new Date((visit.at(-1) ?? visit[0]).at).toISOString(),
    to: new Date(visit[0].at).toISOString(),
    who: name,
    role: detail,
    apps: apps.join(', '),
    kind: ACCESS_KINDS[kind],
    what:
      kind === 'list'
        ? describeLists(visit)
        : apps.length < 2
          ? describeVisit(visit, { actors, whose })
          : describeByApp(visit, { actors, whose }).join(' '),
  }
}

import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import { formatDate, readZone } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import { isPatientUser } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import { requireLogin } from '../../users/login.ts'
import { findOwnRecords, type OwnRecord } from '../../users/own-records.ts'
import { readAccessLog, readPeople } from '../parts/access-log/read.ts'
import { type AccessLogView, type DayFault, findDayFault, readView } from '../parts/access-log/view.ts'
import { sendErrorPage } from '../parts/page-parts.ts'
import { describeWhose } from '../parts/whose.ts'
import { DOWNLOADS, type DownloadFormat, writeVisits } from './download.ts'
import { renderAccessLogPage } from './page.ts'

/** `/account/access-log`: patients and related persons see who looked at the records they may open (PATIENTS-6). */
export function addAccessLogRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.accountAccessLog,
    requireRecord(context, async (reply, login, { view, records, fault }) => {
      const [log, people] = await Promise.all([
        readAccessLog(context, login.user, fault ? { ...view, since: undefined, until: undefined } : view),
        readPeople(
          context,
          login.user,
          records.map(({ patientId }) => patientId),
        ),
      ])
      const whose = describeWhose(login.user, people, view.patient)
      const page = renderAccessLogPage(context, login, { ...log, view, people, records, whose, fault })
      return reply.sendPage(page, { status: fault ? 400 : 200 })
    }),
  )

  const download = (format: DownloadFormat) =>
    requireRecord(context, async (reply, login, { view, fault }) => {
      if (fault) return reply.redirect(reply.request.url.replace(/^[^?]*/, paths.accountAccessLog), 302)
      const people = await readPeople(context, login.user, [view.patient])
      const whose = describeWhose(login.user, people, view.patient)
      const parts = writeVisits(context, login.user, { view, whose, format })
      if (!parts) return sendBusy(context, reply, login)
      return reply.sendDownload(`${nameFile(context, view)}.${format}`, DOWNLOADS[format].type, parts)
    })
  app.get(paths.accountAccessLogCsv, download('csv'))
  app.get(paths.accountAccessLogJson, download('json'))
}

type RecordHandler = (
  reply: FastifyReply,
  login: Login,
  options: {
    readonly view: AccessLogView
    readonly records: readonly OwnRecord[]
    readonly fault: DayFault | undefined
  },
) => Promise<FastifyReply>

/** Requires a user who may open a record. The start page says why there is none. */
function requireRecord(context: AuthContext, handle: RecordHandler) {
  return requireLogin(context, async (request: FastifyRequest, reply, login) => {
    const found = await findOwnRecords(context, login.user)
    const records = isFailure(found) ? [] : found
    const [first, ...others] = records.map(({ patientId }) => patientId)
    if (first === undefined) return reply.redirect(isPatientUser(login.user) ? paths.home : paths.manage, 302)
    const query = readParameters(request.query)
    const view = readView(query, [first, ...others], readZone(request.cookies))
    return handle(reply, login, { view, records, fault: findDayFault(query) })
  })
}

/** Each record and day has another name. It tells no one whose record it is. */
function nameFile({ clock }: AuthContext, { patient, zone }: AccessLogView): string {
  return `who-looked-${formatDate(clock(), zone)}-${hash('sha256', patient, 'hex').slice(0, 6)}`
}

function sendBusy(context: AuthContext, reply: FastifyReply, login: Login): FastifyReply {
  reply.header('retry-after', '60')
  return sendErrorPage(reply, context, {
    kind: 'unavailable',
    status: 503,
    title: 'Too many downloads are running',
    text: ['Try again in a minute.'],
    actions: [{ href: paths.accountAccessLog, text: 'Back' }],
    login,
    current: 'access-log',
  })
}

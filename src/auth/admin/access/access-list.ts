import { Type } from 'typebox'
import { Time } from '../../../endpoint/index.ts'
import { formatName } from '../../../web/person/index.ts'
import { type Html, html, renderBadge, renderDateTime, renderHidden } from '../../../web/ui/index.ts'
import { summarizeScopes } from '../../words/scopes.ts'
import type { AdminOperation } from '../base/action.ts'
import { APP_FILTER, USER_FILTER } from '../base/find-named.ts'
import { defineArea } from '../subject/area.ts'
import type { SubjectColumns } from '../subject/columns.ts'
import type { Found } from '../subject/filters.ts'
import { defineList, type MoreOfList, type ShownList } from '../subject/list.ts'
import { renderRows } from '../subject/list-page.ts'
import {
  findPatientNames,
  isMistyped,
  type PatientNames,
  renderPatient,
} from '../subject/page/find-patients.ts'
import type { AdminRequest } from '../subject/page/route.ts'
import { renderDangerLink, renderLink } from '../subject/page/shell.ts'
import type { Subject } from '../subject/subject.ts'
import {
  findGrant,
  type GrantDescription,
  listGrants,
  listServices,
  revokeGrantById,
  type ServiceDescription,
} from './grants.ts'
import { findLastUse } from './last-use.ts'

/** Access of an app on behalf of a user, or by itself. */
export interface GivenAccess
  extends ServiceDescription,
    Partial<Omit<GrantDescription, keyof ServiceDescription>> {
  /** The names of patients that the page shows. */
  readonly names?: PatientNames
  /** Of a program. */
  readonly lastUse?: number | undefined
}

export const REVOKED = 'The access is revoked.'
export const CAPTION = 'Access of apps, newest first'

const EXPORT_ACCESS: AdminOperation = { name: 'grant export', signIn: 'never asks', isForAuditors: true }

export const ACCESS_COLUMNS: SubjectColumns<GivenAccess> = {
  id: {
    schema: Type.String(),
    about: 'Also the id of its launch in the audit trail.',
    of: 'id',
    table: 'ID',
  },
  client_id: {
    schema: Type.String(),
    of: 'clientId',
    page: [
      'App',
      ({ clientId, clientName, isAgent }) =>
        html`${renderLink(`/apps/${encodeURIComponent(clientId)}`, clientName)}${isAgent === true && html`&ensp;${renderBadge('Assistant')}`}`,
    ],
    table: 'APP',
  },
  app: { csv: access => access.clientName },
  clinician_id: { of: 'userId', schema: Type.String(), csv: false },
  username: {
    schema: Type.String(),
    of: 'username',
    page: [
      'User',
      ({ userId = '', displayName, username }) =>
        html`${renderLink(`/clinicians/${encodeURIComponent(userId)}`, displayName ?? '')}<span class="sub"><code>${username}</code></span>`,
    ],
    table: ['USER', access => access.username ?? '(no user)'],
  },
  user: { csv: access => access.displayName },
  patient: {
    schema: Type.Optional(Type.String()),
    of: 'patientId',
    page: ['Patient', renderAccessPatient],
    table: ['PATIENT', formatPatient],
  },
  every_patient: { csv: access => access.opensEvery },
  scope: { schema: Type.String(), of: 'scope', page: ['Scopes', access => renderScopes(access.scope)] },
  created_at: { schema: Time, of: 'createdAt', csv: 'granted_at', page: 'Granted', table: 'GRANTED' },
  last_used_at: { schema: Time, of: 'lastUsedAt', page: 'Last used', table: 'LAST USED' },
  expires_at: {
    schema: Type.Optional(Time),
    of: 'endsAt',
    csv: 'ends_at',
    page: ['Ends', ({ endsAt }) => (endsAt === undefined ? 'When it is revoked' : renderDateTime(endsAt))],
  },
  scopes: { table: ['SCOPES', access => access.scope] },
}

function formatPatient({ username, patientId, opensEvery }: GivenAccess): string {
  if (username === undefined) return opensEvery ? 'every' : 'none'
  return (
    [patientId, opensEvery ? 'any of the user' : undefined].filter(text => text !== undefined).join(', ') ||
    '-'
  )
}

function renderAccessPatient({ patientId, opensEvery, names = new Map() }: GivenAccess): Html | string {
  if (patientId === undefined) return opensEvery ? 'Any' : 'None'
  return html`${renderPatient(patientId, names)}${opensEvery && html`<span class="sub">and any other</span>`}`
}

function renderScopes(scope: string): Html {
  const { length } = scope.split(' ')
  return html`<details class="more"><summary>${length === 1 ? '1 scope' : `${length} scopes`}</summary><p class="url url--block">${scope}</p></details>`
}

const SERVICE_COLUMNS: SubjectColumns<GivenAccess> = {
  client_id: { schema: Type.String(), of: 'clientId' },
  client_name: {
    schema: Type.String(),
    of: 'clientName',
    page: [
      'App',
      ({ clientId, clientName }) => renderLink(`/apps/${encodeURIComponent(clientId)}`, clientName),
    ],
  },
  summary: { page: ['What it may do', ({ scope }) => summarizeScopes(scope)] },
  scope: {
    schema: Type.String(),
    about: 'The scopes that it may request without a user.',
    of: 'scope',
    page: ['Scopes', ({ scope }) => renderScopes(scope)],
  },
  last_used: {
    page: ['Last used', ({ lastUse }) => (lastUse === undefined ? 'Never' : renderDateTime(lastUse))],
  },
}

const FILTERS = {
  client_id: { ...APP_FILTER, help: 'Only access of this app: its id or its name.' },
  clinician_id: {
    ...USER_FILTER,
    help: 'Only grants of this user: a username, a name, the id of an account or a FHIR user (Practitioner/1).',
  },
  patient: {
    schema: Type.String(),
    about:
      'The id of a patient. `any`: grants with access to every patient that the user can see (`user/` scopes).',
    names: 'patient',
    find: async (_: unknown, text: string): Promise<Found<readonly string[] | 'any'>> => ({
      found: text === ANY ? ANY : [text.replace(/^Patient\//, '')],
    }),
  },
} as const

/** The value of a filter by patient that means `opensEvery`. */
const ANY = 'any'

type AccessView = ShownList<typeof FILTERS>

/** Who has access now: the grants of users. */
export const GRANTS = defineList<GivenAccess, typeof FILTERS>({
  columns: ACCESS_COLUMNS,
  filters: FILTERS,
  read: (admin, { client_id: clientIds, clinician_id: userIds, patient, ...page }) =>
    listGrants(admin, {
      clientIds,
      userIds,
      ...(patient === ANY ? { opensEvery: true } : { patientIds: patient }),
      ...page,
    }),
  others: {
    name: 'services',
    columns: SERVICE_COLUMNS,
    // Backend services act for no user.
    read: async (admin, { client_id: clientIds, clinician_id: userIds, patient }) =>
      userIds ? [] : listServices(admin, { clientIds, usesFhir: patient !== undefined }),
  },
  api: {
    path: '/grants',
    title: 'Who has access now: grants that can still be used, newest first',
    description: 'All of them, or of an app, a user or a patient. A page may have fewer items than `limit`.',
  },
  page: {
    section: 'access',
    title: 'Access now',
    lead: 'Apps that can use records now, on behalf of a user or by themselves. Users see their own under Apps with access.',
    caption: CAPTION,
    fields: ['clinician_id', 'client_id', 'patient'],
    notFound: { title: 'No app has access', text: 'No access that can be used now matches these filters.' },
    noMatch: 'No access that can be used now matches these filters.',
    notYetFound: {
      title: 'None among the newest',
      text: 'Older access may match. See the next page.',
    },
    unknown: {
      title: 'Unknown user, app or patient.',
      patient: 'Unknown user, app or patient.',
      misspelt: 'Check the spelling. Somebody may still have access.',
      unsure: 'Somebody may still have access.',
    },
    done: { revoked: REVOKED },
    renderAction: (access, { request }) => renderRevoke(access, `?${request.url.split('?')[1] ?? ''}`),
    complete: completePage,
  },
  csv: { path: '/access/export.csv', file: 'access.csv', operation: EXPORT_ACCESS, target: 'csv' },
  command: {
    name: 'grant list',
    nouns: 'grants',
    about:
      'Prints who has access now, as /admin/access does: the grants of apps on behalf of users that can still be used, newest first, and the apps that need no user (backend services, programs of this server).',
    more: 'To end one: grant revoke <id>, or client disable <id>',
    none: 'No app has access.',
  },
})

/** The names of the patients, and the programs that have access without a user. */
async function completePage(
  request: AdminRequest,
  view: AccessView,
  items: readonly GivenAccess[],
): Promise<MoreOfList<GivenAccess>> {
  const { meant, patients, isContinued } = view
  const ids = items.flatMap(({ patientId }) => patientId ?? [])
  const names = await findPatientNames(request, 'administration-names', ids, patients)
  const services = isContinued ? [] : await GRANTS.others?.read(request.admin, meant)
  return {
    items: items.map(access => ({ ...access, names })),
    between: html`${patients && isMistyped(patients) && renderNoteOnPatient(view)}
<h2 class="section__title subhead">On behalf of users</h2>`,
    below: await renderServices(request, services ?? []),
  }
}

/** Access to all patients of a user includes the one that was asked for. */
function renderNoteOnPatient({ buildPath }: AccessView): Html {
  return html`<p class="small">Apps may also open this patient through ${renderLink(buildPath({ patient: ANY }), 'access to every patient whom a user may see')}.</p>`
}

/** `list`: the query of the list to which a revocation returns, with its question mark. */
export function renderRevoke({ id = '', clientName, username }: GivenAccess, list?: string): Html {
  const query = list === undefined ? '' : `?${new URLSearchParams({ list })}`
  return renderDangerLink(
    `/grants/${encodeURIComponent(id)}/revoke${query}`,
    html`Revoke<span class="sr"> access of ${clientName} for ${username}</span>`,
  )
}

async function renderServices(
  request: AdminRequest,
  services: readonly GivenAccess[],
): Promise<Html | undefined> {
  if (services.length === 0) return undefined
  const used = services.map(async service => ({
    ...service,
    lastUse: await findLastUse(request.admin, service.clientId),
  }))
  const table = {
    columns: SERVICE_COLUMNS,
    caption: 'Apps that need no user',
    renderAction: ({ clientId, clientName }: GivenAccess) =>
      renderDangerLink(
        `/apps/${encodeURIComponent(clientId)}/disable`,
        html`Disable<span class="sr"> ${clientName}</span>`,
      ),
  }
  return html`<h2 class="section__title subhead">Without a user</h2>
<p class="small">Backend services and programs of this server. They have access until they are disabled.</p>
<div class="after">${renderRows(request, table, await Promise.all(used))}</div>`
}

/** Programs that have access without a user. */
const SERVICES = defineList<GivenAccess, Pick<typeof FILTERS, 'client_id'>>({
  columns: SERVICE_COLUMNS,
  filters: { client_id: FILTERS.client_id },
  read: async (admin, { client_id: clientIds }) => ({
    items: await listServices(admin, { clientIds }),
    next: undefined,
  }),
  api: {
    path: '/services',
    title: 'Programs that have access now without a user (`client_credentials`), by id',
    isWhole: true,
  },
})

/** A grant, and its patient in words if the administrator may read them. */
interface ShownGrant extends GrantDescription {
  readonly patientName?: string | undefined
}

/** The access that an app has on behalf of a user. */
const GRANT: Subject<ShownGrant, string, { readonly id: string }, GivenAccess> = {
  name: 'grant',
  lists: [SERVICES, GRANTS],
  operations: {
    revoke: {
      signIn: 'never asks',
      api: {
        method: 'DELETE',
        path: '',
        title: 'Revoke a grant with all its tokens',
        description: 'FHIR servers refuse them within 5 seconds.',
      },
      page: {
        title: () => 'Revoke this access?',
        text: 'The app’s tokens are refused within 5 seconds. The user can launch the app again.',
        button: 'Revoke access',
      },
      command: {
        done: 'Revoked',
        help: `
The app loses this access. FHIR servers refuse its tokens within 5 seconds. The user can launch the app again.`,
      },
      perform: revokeGrantById,
    },
  },
  toTarget: id => id,
  find: ({ admin }, id) => findGrant(admin, id),
  api: { path: '/grants/:id' },
  pages: {
    section: 'access',
    path: '/grants/:id',
    async prepare(request, grant) {
      const { patientId } = grant
      const ids = patientId === undefined ? [] : [patientId]
      const person = (await findPatientNames(request, 'administration-names', ids)).get(patientId ?? '')
      return { ...grant, patientName: person && formatName(person.name) }
    },
    getBack: ({ form }, { clientId }) =>
      formatList(form.get('list')) ?? `/apps/${encodeURIComponent(clientId)}`,
    listFacts: async (_, grant) => [
      ['App', html`${grant.clientName} <code>${grant.clientId}</code>`],
      ['User', html`${grant.displayName} <code>${grant.username}</code>`],
      ['Patient', describeAccessPatient(grant)],
      ['Last used', renderDateTime(grant.lastUsedAt)],
    ],
    show: ({ form }, _, { row }) =>
      formatList(form.get('list'), 'revoked') ??
      `/apps/${encodeURIComponent(row?.clientId ?? '')}?done=revoked`,
    forms: {
      revoke: {
        render: ({ form }) => html`${renderHidden({ list: form.get('list') })}`,
        read: () => ({}),
      },
    },
  },
  command: { noun: 'grant', option: 'id' },
}

function describeAccessPatient({ patientId, patientName, opensEvery }: ShownGrant): Html {
  if (patientId === undefined) return html`${opensEvery ? 'Any whom the user may see' : 'None'}`
  return html`${patientName} <code>${patientId}</code>${opensEvery && ', and any other whom the user may see'}`
}

/** The list of access, with the filters with which the administrator left it. */
function formatList(filters: string | undefined, done?: string): string | undefined {
  if (filters === undefined) return undefined
  const query = new URLSearchParams(filters)
  query.delete('done')
  if (done !== undefined) query.set('done', done)
  return `/access?${query}`
}

/** `/admin/access`: who has access now. */
export const ACCESS_AREA = defineArea(GRANT)

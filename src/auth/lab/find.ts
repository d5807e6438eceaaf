import type { FastifyInstance } from 'fastify'
import { findOwn, toSentence } from '../../core/index.ts'
import { containsText } from '../../store/index.ts'
import { chooseRecordNumber, formatName, type Person } from '../../web/person/index.ts'
import { formatDate } from '../../web/ui/index.ts'
import { createFhirReader } from '../base/fhir-reader.ts'
import { readParameters } from '../base/request.ts'
import type { AuthContext } from '../oauth/context.ts'
import { findPatients, listPeople } from '../patients/patients.ts'
import { findSearchFault } from '../patients/queries.ts'
import type { Login } from '../users/find-login.ts'
import { requireClinician } from '../users/login.ts'
import { findPageProblem } from './access.ts'
import { FOUND } from './limits.ts'
import { labPaths } from './paths.ts'

/** What a picker shows of an app, a user or a patient. */
export interface PickerItem {
  /** The value of the link's parameter. */
  readonly value: string
  readonly name: string
  readonly about: string
}

/** `GET /lab/find`: finds apps, users and patients by their names, for the pickers of the page. */
export function addFindRoute(app: FastifyInstance, context: AuthContext): void {
  app.get(
    labPaths.find,
    requireClinician(context, async (request, reply, login) => {
      const problem = findPageProblem(context, request, login)
      if (problem) return reply.code(problem.status).send({ error: problem.error })
      const { get } = readParameters(request.query)
      const find = findOwn(FINDERS, get('what') ?? '')
      const text = get('text')?.trim() ?? ''
      const tooLong = findSearchFault(text)
      const fault = find
        ? tooLong && toSentence(tooLong.text)
        : `Set the parameter “what” to one of these: ${Object.keys(FINDERS).join(', ')}.`
      if (!find || fault !== undefined)
        return reply.code(400).send({ error: 'invalid_request', error_description: fault })
      return reply.send({ found: await find(context, login, text) })
    }),
  )
}

const FINDERS: Readonly<
  Record<string, (context: AuthContext, login: Login, text: string) => Promise<readonly PickerItem[]>>
> = {
  client: (context, _login, text) => findApps(context, text),
  user: (context, _login, text) => findUsers(context, text),
  patient: findPeople,
}

export async function findApps({ store: { db } }: AuthContext, text: string): Promise<readonly PickerItem[]> {
  const rows = await db
    .selectFrom('client')
    .select(['client_id', 'name', 'launch_url'])
    .where('disabled', '=', false)
    .$if(text !== '', query => query.where(containsText(['name', 'client_id'], text)))
    .orderBy('name')
    .orderBy('client_id')
    .limit(FOUND)
    .execute()
  return rows.map(({ client_id, name, launch_url }) => ({
    value: client_id,
    name,
    about: launch_url === null ? `${client_id}, no launch URL` : client_id,
  }))
}

export async function findUsers(
  { store: { db } }: AuthContext,
  text: string,
): Promise<readonly PickerItem[]> {
  const rows = await db
    .selectFrom('clinician')
    .select(['username', 'display_name', 'fhir_user_id'])
    .where('disabled', '=', false)
    .where('fhir_user_id', '!=', '')
    .$if(text !== '', query => query.where(containsText(['display_name', 'username'], text)))
    .orderBy('display_name')
    .orderBy('username')
    .limit(FOUND)
    .execute()
  return rows.map(({ username, display_name, fhir_user_id }) => ({
    value: username,
    name: display_name,
    about: `${username}, ${nameKind(fhir_user_id)}`,
  }))
}

function nameKind(fhirUserId: string): string {
  if (fhirUserId.startsWith('Patient/')) return 'patient'
  return fhirUserId.startsWith('RelatedPerson/') ? 'relative of a patient' : 'clinician'
}

/** The patients whom the user who is signed in may see. Empty while the FHIR server is unreachable. */
async function findPeople(
  context: AuthContext,
  { user }: Login,
  text: string,
): Promise<readonly PickerItem[]> {
  const read = await createFhirReader(context, user, { purpose: 'developer' })
  const list = await findPatients(read, { search: text || undefined, page: undefined, recent: [] })
  return list.kind === 'list' ? listPeople(list).map(describePerson) : []
}

export function describePerson(person: Person): PickerItem {
  const { label, value } = chooseRecordNumber(person)
  return {
    value: person.id,
    name: formatName(person.name),
    about: `Born ${formatDate(person.born)}, ${label} ${value}`,
  }
}

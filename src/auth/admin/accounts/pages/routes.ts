import { findOwn, isFailure } from '../../../../core/index.ts'
import { defineArea } from '../../subject/area.ts'
import { findRow, renderDetails } from '../../subject/details.ts'
import type { AdminRoute } from '../../subject/page/route.ts'
import { createPassword } from '../change-sign-in.ts'
import { addUser, changeUser } from '../change-user.ts'
import { listNewUserFaults, listUserFaults, UserFault } from '../check-user.ts'
import { findUnknown, listFhirUsers } from '../fhir-users.ts'
import { buildUserPath, SECTION } from '../user-list.ts'
import { getUserOperation } from '../user-operations.ts'
import { askWhoIsBound, readSearch, renderPatientChoice } from './bind-user.ts'
import { showChanged, USERS } from './user-actions.ts'
import { readEntries, readUser, renderNewUser } from './user-form.ts'
import { describeUser, renderWarnings } from './user-page.ts'

/** The form of a new user, and that on the page of a user. */
const formRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/clinicians/new',
    operation: getUserOperation('clinician', 'add'),
    handle: async request => renderNewUser(request),
  },
  {
    method: 'POST',
    path: '/clinicians/new',
    operation: getUserOperation('clinician', 'add'),
    async handle(request) {
      const { admin, form, reply } = request
      const entries = readEntries(form)
      const wanted = readUser(entries)
      const refuse = (faults: readonly UserFault[]) =>
        reply.sendPage(renderNewUser(request, entries, faults), { status: 400 })
      const step = { section: SECTION, entries, action: '/clinicians/new' } as const
      if (readSearch(form) !== undefined) return renderPatientChoice(request, step)
      if (form.get('edit') !== undefined) return renderNewUser(request, entries)
      const faults = await listNewUserFaults(admin, wanted)
      // A patient may be chosen first: a field that is still empty is no fault then.
      const isChosen = form.get('choose') !== undefined
      if (faults.length > 0)
        return refuse(faults.filter(({ property }) => !isChosen || findOwn(entries, property) !== ''))
      const question = await askWhoIsBound(request, { ...step, user: wanted, added: listFhirUsers(wanted) })
      if (question) return question
      const password = entries.password === '1' ? createPassword() : undefined
      const user = await addUser(admin, { ...wanted, password, withLink: entries.password === 'link' })
      if (isFailure(user)) return user instanceof UserFault ? refuse([user]) : user
      const unknown = await findUnknown(request.context, admin, listFhirUsers(user))
      const warnings = await renderWarnings(request, user, unknown)
      return showChanged(request, { ...user, ...(password !== undefined && { password }) }, 'added', warnings)
    },
  },
  {
    method: 'POST',
    path: '/clinicians/:id',
    operation: getUserOperation('clinician', 'set'),
    async handle(request) {
      const user = await findRow(USERS, request)
      if (isFailure(user)) return user
      const entries = readEntries(request.form)
      const { kind, username, relatedPersons, ...others } = readUser(entries, user.fhirUser)
      const changes = { ...others, ...(kind === 'account' && { relatedPersons }) }
      const wanted = { ...user, ...changes }
      const step = {
        section: SECTION,
        entries,
        action: buildUserPath(user),
        back: buildUserPath(user),
      } as const
      if (readSearch(request.form) !== undefined) return renderPatientChoice(request, step)
      const faults = listUserFaults(wanted)
      if (faults.length > 0)
        return request.reply.sendPage(
          await renderDetails(USERS, request, user, await describeUser(request, user, { entries, faults })),
          { status: 400 },
        )
      const former = new Set(listFhirUsers(user))
      const added = listFhirUsers(wanted).filter(reference => !former.has(reference))
      const question = await askWhoIsBound(request, { ...step, user: wanted, added })
      return question ?? showChanged(request, await changeUser(request.admin, user, changes), 'saved')
    },
  },
]

/** `/admin/clinicians`: clinicians, and the accounts of patients and related persons. */
export const USER_AREA = defineArea(USERS, { routes: formRoutes })

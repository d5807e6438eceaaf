import { capitalize, fail, isFailure } from '../../../core/index.ts'
import { type Html, html, renderAlert, renderEmptyState, renderField } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { formatFhirUser } from '../../base/user.ts'
import type { AdminFailure } from '../base/action.ts'
import type { Area } from '../subject/area.ts'
import {
  findMeantPatients,
  findPatientNames,
  isMistyped,
  namePatientField,
  refusePatients,
  renderPatient,
  renderPatientChoice,
} from '../subject/page/find-patients.ts'
import type { AdminRequest, AdminRoute } from '../subject/page/route.ts'
import { renderAdminPage, renderTable } from '../subject/page/shell.ts'
import { describePolicy } from './describe-system.ts'
import {
  checkPolicy,
  explainPatientAccess,
  type PatientAccess,
  type PolicyCheck,
  policyEndpoints,
  VALIDATE_POLICY,
} from './policy.ts'
import { renderReloadLink } from './system-page.ts'

/** `/admin/policy`: shows who may see a patient and why, and validates a policy file. */
const policyRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/policy',
    async handle(request) {
      const patient = request.form.get('patient')?.trim().slice(0, LIMITS.searchCharacters) ?? ''
      const answer = patient === '' ? undefined : await answerQuestion(request, patient)
      const status = isFailure(answer) ? (answer.code === 'unavailable' ? 503 : 404) : 200
      return request.reply.sendPage(renderPolicyPage(request, { patient, answer }), { status })
    },
  },
  {
    method: 'POST',
    path: '/policy',
    operation: VALIDATE_POLICY,
    async handle(request) {
      const { form, reply } = request
      const text = form.get('file') ?? form.get('text') ?? ''
      const checked = text.length > LIMITS.policyCharacters ? TOO_LONG : checkPolicy(text)
      return reply.sendPage(renderPolicyPage(request, { text, checked }), {
        status: isFailure(checked) ? 422 : 200,
      })
    },
  },
]

export const POLICY_AREA: Area = { routes: policyRoutes, endpoints: policyEndpoints }

const TOO_LONG = fail({
  problems: [`more than ${LIMITS.policyCharacters.toLocaleString('en')} characters`],
})

/** Says who may see the patient that a text means, or shows the patients that it may mean. */
async function answerQuestion(request: AdminRequest, text: string): Promise<Html | AdminFailure> {
  const meant = await findMeantPatients(request, 'patient-search', text)
  const [id, ...others] = meant.found.length === 0 ? meant.ids : meant.found.map(person => person.id)
  if (others.length > 0)
    return renderPatientChoice(meant, {
      now: request.context.clock(),
      build: patient => `/policy?${new URLSearchParams({ patient })}`,
    })
  if (id === undefined || meant.fault?.reason === 'patients-unavailable') return refusePatients(meant)
  const found = await explainPatientAccess(request.admin, request.context, id)
  const isName = isFailure(found) && found.code === 'not_found' && !isMistyped(meant)
  if (isFailure(found)) return isName ? refusePatients(meant) : found
  const [patients, accounts] = await Promise.all([
    findPatientNames(request, 'policy', [id], meant),
    findAccountNames(request, found),
  ])
  return html`<p>${renderPatient(id, patients)}</p><div class="after">${renderFound(found, accounts)}</div>`
}

const TITLES: Readonly<Record<string, string>> = { unavailable: 'Not known.', forbidden: 'Not looked up.' }

/** More clinicians are shown by id. */
const NAMED = 200

/** The names of the accounts of clinicians, by the reference to their Practitioner. */
async function findAccountNames(
  { context }: AdminRequest,
  found: readonly PatientAccess[],
): Promise<ReadonlyMap<string, string>> {
  const references = found
    .flatMap(({ clinicians }) => (clinicians === 'all' ? [] : clinicians))
    .slice(0, NAMED)
  if (references.length === 0) return new Map()
  const rows = await context.store.db
    .selectFrom('clinician')
    .select(['fhir_user_id', 'display_name'])
    .where('fhir_user_id', 'in', [...references, ...references.map(it => it.replace(/^Practitioner\//, ''))])
    .execute()
  return new Map(rows.map(row => [formatFhirUser(row.fhir_user_id), row.display_name]))
}

interface PolicyView {
  readonly patient?: string
  readonly answer?: Html | AdminFailure | undefined
  readonly text?: string
  readonly checked?: PolicyCheck
}

function renderPolicyPage(
  request: AdminRequest,
  { patient = '', answer, text = '', checked }: PolicyView,
): Html {
  const policy = request.context.controls.getPolicy()
  return renderAdminPage(
    request,
    {
      section: 'policy',
      title: 'Policy',
      lead: describePolicy(policy?.rules.length),
      actions: renderReloadLink(request),
    },
    html`<h2 class="section__title">Who may see a patient, and why</h2>
<form class="narrow narrow__form" method="get" action="${paths.admin}/policy">
${renderField({ name: 'patient', label: namePatientField(request), value: patient, required: true })}
<p class="narrow__act"><button class="btn btn--small">Show</button></p></form>
${isFailure(answer) ? renderAlert(TITLES[answer.code] ?? 'Not found.', answer.sentence, 'bad') : answer}
${request.mayChange && renderValidation(text, checked)}`,
  )
}

function renderValidation(text: string, checked: PolicyCheck | undefined): Html {
  return html`<h2 class="section__title subhead">Validate a policy file</h2>
${checked && renderCheck(checked)}
<form class="card card__body stack after" method="post" action="${paths.admin}/policy" enctype="multipart/form-data">
<div class="field"><label class="field__label" for="file">File</label><input class="input" type="file" id="file" name="file" accept=".yaml,.yml,.json"></div>
<div class="field"><label class="field__label" for="text">Or its text (YAML or JSON)</label><textarea class="input" id="text" name="text" rows="10" autocomplete="off" autocapitalize="none" spellcheck="false">${text}</textarea></div>
<div class="actions"><button class="btn btn--quiet">Validate file</button></div>
</form>
<p class="small muted after">Validating a file changes nothing. To use a new file, replace the file that <code>smart.fhir.policy-file</code> names, and reload the settings.</p>`
}

function renderFound(found: readonly PatientAccess[], names: ReadonlyMap<string, string>): Html {
  if (found.length === 0)
    return html`<div class="card">${renderEmptyState({ title: 'No clinician may see this patient', text: 'No rule of the policy includes the patient.' })}</div>`
  const rows = found.map(({ rule, reason, clinicians }) => [
    rule === undefined ? 'No policy' : `Rule ${rule}`,
    capitalize(reason),
    clinicians === 'all'
      ? 'All clinicians'
      : html`${clinicians.map(user => html`<p>${names.has(user) ? html`${names.get(user)}<span class="sub"><code>${user}</code></span>` : html`<code>${user}</code>`}</p>`)}`,
  ])
  return renderTable('Rules that include the patient', ['Rule', 'Reason', 'Clinicians'], rows)
}

/** A long list helps nobody. */
const MAX_PROBLEMS = 50

function renderCheck(checked: PolicyCheck): Html {
  if (!isFailure(checked))
    return html`<div role="status">${renderAlert('The file is valid.', `It has ${checked.rules} rules.`, 'ok')}</div>`
  return html`${renderAlert('The file is invalid.', 'A server does not start with it.', 'bad')}
<ul class="bullets">${checked.problems.slice(0, MAX_PROBLEMS).map(problem => html`<li>${problem}</li>`)}</ul>`
}

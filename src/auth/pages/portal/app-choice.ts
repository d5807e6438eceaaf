import { type Html, html, renderHidden, renderIcon, renderSearchForm } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import type { Parameters } from '../../base/request.ts'
import type { Client } from '../../oauth/clients/client.ts'
import type { AppList, LaunchableApp } from '../../oauth/launch/apps.ts'
import type { FormFault, OptionField } from '../../oauth/launch/options.ts'
import { renderAppIdentity, renderListedApp } from '../parts/apps.ts'
import { buildPortalUrl, type ListView } from '../parts/patient-list.ts'

/** What somebody has chosen and typed in the launch form, and the field at fault. */
export interface EnteredLaunch {
  readonly form: Parameters
  /** Empty if "No encounter" was chosen, undefined if nothing was. */
  readonly encounterId: string | undefined
  readonly fault?: FormFault
}

export interface AppChoiceOptions {
  readonly apps: AppList
  readonly chosen: LaunchableApp
  /** The text by which apps were searched. */
  readonly appSearch: string | undefined
  readonly patientId: string
  readonly view: ListView
  readonly entered: EnteredLaunch | undefined
}

const OPTION_FIELDS: readonly OptionField[] = ['needPatientBanner', 'intent', 'tenant', 'fhirContext']

/** What the form keeps while another app is searched. */
function listKept({ patientId, chosen, view, entered }: AppChoiceOptions) {
  return { ...view, patient: patientId, client: chosen.client.id, ...listEntered(entered) }
}

/** The parameters of the portal that show a launch form again as it was. */
export function listEntered(
  entered: EnteredLaunch | undefined,
): Readonly<Record<string, string | undefined>> {
  const options = OPTION_FIELDS.map(name => [name, entered?.form.get(name)])
  return {
    encounters: entered?.form.get('encounters'),
    step: entered && 'encounter',
    encounterId: entered?.encounterId,
    ...Object.fromEntries(options),
  }
}

/** Sends the form to the portal instead: it is shown again with all that was entered. */
const SHOW_AGAIN = html`formaction="${paths.portal}" formmethod="get"`

/**
 * The app of the launch form, and buttons for others. The content security policy lets the form lead to the chosen app only,
 * so the page is loaded again for another one.
 */
export function renderAppChoice({ apps: { apps, hasMore }, chosen }: AppChoiceOptions): Html {
  const others = apps.filter(({ client }) => client.id !== chosen.client.id)
  return html`<fieldset class="launch__app"><legend class="legend">App</legend><div class="stack stack--tight">
<div class="choices"><div class="choice choice--link" aria-current="true">${renderDetails(chosen.client, apps, renderAppIdentity)}</div></div>
${
  others.length + Number(hasMore) > 0 &&
  html`<details class="more"><summary>Choose another app</summary><div class="choices">${others.map(
    ({ client }) =>
      html`<button class="choice choice--link" name="client" value="${client.id}" ${SHOW_AGAIN}>${renderDetails(client, apps, renderListedApp)}</button>
`,
  )}${hasMore && html`<button class="choice choice--link" name="apps" value="find" ${SHOW_AGAIN}><span class="choice__main">Find another app by name…</span></button>`}</div></details>`
}
</div></fieldset>`
}

/** The search for an app, instead of the launch form. */
export function renderAppFinder(options: AppChoiceOptions): Html {
  const { apps, appSearch } = options
  const kept = listKept(options)
  return html`<div class="stack stack--tight"><p class="back"><a href="${buildPortalUrl(kept)}">${renderIcon('back')}Back to the launch</a></p>
${renderSearchForm({ action: paths.portal, name: 'app', label: 'Find another app by name', subject: 'Apps', value: appSearch, maxCharacters: LIMITS.searchCharacters, hidden: { ...kept, apps: 'find' } })}
${
  apps.apps.length === 0
    ? html`<p class="muted">No app matches “${appSearch}”.</p>`
    : html`<nav class="choices" aria-label="Apps">${apps.apps.map(
        ({ client }) =>
          html`<a class="choice choice--link" href="${buildPortalUrl({ ...kept, client: client.id })}">${renderDetails(client, apps.apps, renderListedApp)}</a>
`,
      )}</nav>`
}
${apps.hasMore && html`<p class="muted">There are more apps. Type more of the name to find them.</p>`}</div>`
}

/** Fields that `GET /portal` needs besides those of the launch itself. */
export function renderShownAgain(options: {
  readonly patientId: string
  readonly view: ListView
  readonly allEncounters: boolean
}): readonly Html[] {
  const { patientId, view, allEncounters } = options
  return renderHidden({ ...view, patient: patientId, encounters: allEncounters ? 'all' : undefined })
}

function renderDetails(
  client: Client,
  apps: readonly LaunchableApp[],
  render: (client: Client) => Html,
): Html {
  return html`<span class="choice__main">${render(client)}</span>${hasNamesake(client, apps) && html`<span class="choice__meta">Client id <code>${client.id}</code></span>`}
${client.description !== undefined && html`<span class="choice__meta">${client.description}</span>`}`
}

// Shows the client id only if two apps have the same name.
function hasNamesake({ id, name }: Client, apps: readonly LaunchableApp[]): boolean {
  return apps.some(({ client }) => client.id !== id && client.name === name)
}

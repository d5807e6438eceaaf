import { HOW, isFailure } from '../../../../core/index.ts'
import { type Html, html, renderAlert, renderDateTime, renderField } from '../../../../web/ui/index.ts'
import { LIMITS } from '../../../base/limits.ts'
import { paths } from '../../../base/paths.ts'
import type { AdminFailure } from '../../base/action.ts'
import type { AdminRequest } from '../../subject/page/route.ts'
import { renderAdminPage, renderButton, renderFacts, renderLink } from '../../subject/page/shell.ts'
import type { FileCheck } from '../check-file.ts'
import type { VerificationReport } from '../verification.ts'

const VERIFIED: Readonly<Record<VerificationReport['state'], (report: VerificationReport) => Html>> = {
  never: () => renderAlert('Not verified yet.', 'This audit trail has never been verified.', 'warn'),
  running: () => renderAlert('Running.', 'Load this page again in a moment.'),
  failed: () =>
    renderAlert('Not finished.', 'The last verification was interrupted. Start it again.', 'warn'),
  intact: () => renderAlert('No change found.', 'No sealed record was changed, removed or inserted.', 'ok'),
  'unknown-head': ({ problems: [problem] = [] }) =>
    html`${renderAlert('The trail does not contain this head.', 'Apart from that, no change was found.', 'warn')}<p>${problem}.</p>`,
  changed: ({ problems = [] }) =>
    html`${renderAlert('The audit trail was changed.', 'Keep the databases as they are, and compare with a backup or a feed.', 'bad')}
<ul class="bullets">${problems.map(problem => html`<li>${problem}</li>`)}</ul>`,
}

export function renderVerification(
  request: AdminRequest,
  report: VerificationReport,
  {
    checked,
    fault,
  }: {
    readonly checked?: FileCheck | AdminFailure
    /** A head that was not accepted. */
    readonly fault?: { readonly head: string; readonly text: string }
  } = {},
): Html {
  const { state, at, records, seals, unsealed, head } = report
  return renderAdminPage(
    request,
    {
      section: 'audit',
      title: 'Verify the audit trail',
      lead: 'Finds records that were changed, removed, inserted or filed under other patients.',
      actions: renderButton('/audit', 'All records'),
    },
    html`${fault && renderAlert('Not verified.', 'Correct the marked field.', 'bad')}${checked && renderChecked(checked)}
<h2 class="section__title${checked && ' subhead'}" id="s-chain">The hash chain</h2>
${VERIFIED[state](report)}
${
  at !== undefined &&
  renderFacts([
    [state === 'running' ? 'Began' : 'Last verified', renderDateTime(at)],
    ['Records', records?.toLocaleString('en')],
    ['Seals', seals?.toLocaleString('en')],
    ['Not yet sealed', unsealed?.toLocaleString('en')],
    [
      'Head',
      head &&
        html`<code class="url">${head}</code><span class="sub">Keep it outside this server. A later verification can then also detect records removed from the end of the trail.</span>`,
    ],
  ])
}
<form class="card card__body stack after" method="post" action="${paths.admin}/audit/verify" aria-labelledby="s-chain">
<p>A verification recomputes the hashes of all records and compares them with the stored ones. For a long trail it takes minutes.</p>
${renderField({ name: 'head', label: 'Head of an earlier verification', hint: 'Optional: finds records that were removed from the end.', value: fault?.head, error: fault?.text, autofocus: fault !== undefined })}
<div class="actions"><button class="btn">Verify now</button></div></form>
<h2 class="section__title subhead" id="s-file">Check an exported file</h2>
<form class="card card__body stack" method="post" enctype="multipart/form-data" action="${paths.admin}/audit/check-file" aria-labelledby="s-file">
<p>Compares each record of a file with the current audit trail, and shows which are unchanged, which differ and which are missing. Nothing is imported.</p>
<p class="field"><label class="field__label" for="file">File</label><input class="input" id="file" name="file" type="file" accept=".ndjson,.csv" required aria-describedby="file-hint"><span class="field__hint" id="file-hint">An NDJSON or CSV export of this audit trail, at most ${LIMITS.exportedFileBytes / 1024 / 1024} MB. For a longer one: <code>${HOW} audit check-file</code></span></p>
<div class="actions"><button class="btn btn--quiet">Check file</button></div></form>`,
  )
}

function renderChecked(checked: FileCheck | AdminFailure): Html {
  if (isFailure(checked))
    return html`<div role="alert">${renderAlert('The file was not checked.', checked.sentence, 'bad')}</div>`
  const { records, unchanged, changed, expired, missing } = checked
  const isGood = changed.count === 0 && missing.count === 0
  const count = (number: number) => number.toLocaleString('en')
  return html`<div role="status">${
    isGood
      ? renderAlert(
          'The file agrees with the trail.',
          `${count(unchanged)} of ${count(records)} records are unchanged.`,
          'ok',
        )
      : renderAlert(
          'The file differs from the trail.',
          'The file or the trail was changed, or the file was exported from another trail. Verify the trail, and keep the file.',
          'bad',
        )
  }</div>
<section aria-label="Result" class="after">${renderFacts([
    ['Records of the file', count(records)],
    ['Unchanged in the trail', count(unchanged)],
    ['Different in the trail', renderGroup(changed)],
    ['Not in the trail', renderGroup(missing)],
    ['Older than the trail', renderGroup(expired)],
  ])}</section>`
}

function renderGroup({ count, first }: FileCheck['changed']): Html {
  return html`${count.toLocaleString('en')}${
    count > 0 &&
    html`<ul class="list">${first.map(({ id, differs = [] }) => html`<li>${differs.length > 0 ? renderLink(`/audit/${id}`, `Record ${id}`) : html`<code class="url">${id}</code>`}${differs.length > 0 && `: ${differs.join(', ')}`}</li>`)}${count > first.length && html`<li>and ${count - first.length} more</li>`}</ul>`
  }`
}

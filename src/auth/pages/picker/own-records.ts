import { computeAge, type Person, renderValue } from '../../../web/person/index.ts'
import { type Html, html, renderBadge, renderDate } from '../../../web/ui/index.ts'
import { listPeople, type PatientList } from '../../patients/patients.ts'
import type { OwnRecord } from '../../users/own-records.ts'
import { renderListNote } from '../parts/patient-list.ts'
import { describeRelation, formatFullName } from '../parts/whose.ts'

/** The records of a patient user as radio buttons, the own one first. None is preselected. */
export function renderOwnRecords(
  list: PatientList,
  {
    records,
    now,
    pager,
  }: { readonly records: readonly OwnRecord[]; readonly now: number; readonly pager: Html | undefined },
): Html {
  const found = new Map(listPeople(list).map(person => [person.id, person]))
  const people = records.flatMap(({ patientId }) => found.get(patientId) ?? [])
  const renderRecord = (person: Person) =>
    html`<label class="choice" data-patient-id="${person.id}"><input type="radio" name="patientId" value="${person.id}"><span class="choice__main">${formatFullName(person)}&ensp;${renderBadge(describeRelation(records, person.id), 'accent')}${
      list.similar.ids.has(person.id) && html`&ensp;${renderBadge('Similar name', 'warn')}`
    }</span><span class="choice__meta">Born ${renderDate(person.born)}, ${renderValue(computeAge(person, now))}</span></label>
`
  return html`<fieldset><legend class="sr">Records that you may choose</legend><div class="card card--clip">${people.map(renderRecord)}
${!list.similar.isComplete && renderListNote(list, '')}${pager}</div></fieldset>`
}

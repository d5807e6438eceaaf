import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureGrowth } from '../../../test/support/growth.ts'
import type { Resource } from '../../fhir/index.ts'
import {
  chooseRecordNumber,
  computeAge,
  findAlike,
  findConfusable,
  formatDeath,
  formatName,
  formatSex,
  type Person,
  readPerson,
  renderAlikeWarning,
  renderName,
  renderPatientBanner,
} from './index.ts'

const NOW = Date.UTC(2026, 10, 13, 14, 0)

function patient(fields: Record<string, unknown>): Resource {
  return { resourceType: 'Patient', id: 'p1', ...fields }
}

function named(family: string, given: string, id = `${family}-${given}`): Person {
  return { id, name: { family, given } }
}

describe('readPerson: name', () => {
  const cases: readonly (readonly [names: unknown, text: string])[] = [
    [[{ family: 'Juniper', given: ['Alba'], prefix: ['Ms'] }], 'Juniper, Alba (Ms)'],
    [[{ family: 'Ashlar', given: ['Tobias', 'Emeka'] }], 'Ashlar, Tobias Emeka'],
    [[{ family: 'Ashlar', given: ['Tobias'], suffix: ['Jr.'] }], 'Ashlar, Tobias Jr.'],
    [[{ family: 'Ashlar' }], 'Ashlar'],
    [[{ given: ['Cher'] }], 'Cher'],
    [[{ text: 'Þóra Obsidian' }], 'Þóra Obsidian'],
    [[], 'Name not recorded'],
    [undefined, 'Name not recorded'],
    ['Juniper', 'Name not recorded'],
    [[{ family: 7, given: 'Alba' }], 'Name not recorded'],
    [[{ family: '  ', given: [''] }], 'Name not recorded'],
    [
      [
        { use: 'maiden', family: 'Thistle', given: ['Alba'] },
        { use: 'usual', family: 'Jay', given: ['Al'] },
        { use: 'official', family: 'Juniper', given: ['Alba'] },
      ],
      'Juniper, Alba',
    ],
    [
      [
        { use: 'official', family: 'Thistle', given: ['Alba'], period: { end: '2001-01-01' } },
        { use: 'official', family: 'Juniper', given: ['Alba'] },
      ],
      'Juniper, Alba',
    ],
    [
      [
        { use: 'nickname', given: ['Bibi'] },
        { family: 'Juniper', given: ['Alba'] },
      ],
      'Juniper, Alba',
    ],
  ]
  for (const [names, text] of cases) {
    it(`reads ${JSON.stringify(names)} as ${text}`, () => {
      assert.equal(formatName(readPerson(patient({ name: names })).name), text)
    })
  }
})

describe('renderName', () => {
  it('leaves the capitals to CSS and escapes its input', () => {
    assert.equal(
      renderName({ family: 'O<b>', given: 'A&B' }).markup,
      '<span class="family">O&lt;b&gt;</span>, A&amp;B',
    )
  })

  it('includes the title only on request', () => {
    const name = { family: 'Juniper', given: 'Alba', title: 'Ms' }
    assert.equal(renderName(name).markup, '<span class="family">Juniper</span>, Alba')
    assert.equal(
      renderName(name, { withTitle: true }).markup,
      '<span class="family">Juniper</span>, Alba <span class="patient__title">(Ms)</span>',
    )
  })
})

describe('formatSex', () => {
  const cases: readonly (readonly [gender: string | undefined, text: string])[] = [
    ['male', 'Male'],
    ['female', 'Female'],
    ['other', 'Other'],
    ['unknown', 'Not known'],
    ['F', 'Not known'],
    ['constructor', 'Not known'],
    [undefined, 'Not recorded'],
  ]
  for (const [gender, text] of cases) {
    it(`writes ${gender} as ${text}`, () => {
      assert.equal(formatSex(gender), text)
    })
  }
})

describe('chooseRecordNumber', () => {
  const MR = { coding: [{ system: 'http://terminology.hl7.org/CodeSystem/v2-0203', code: 'MR' }] }

  it('returns the medical record number with its label', () => {
    const identifier = [
      { type: { coding: [{ code: 'SS' }] }, value: '999-00-1234' },
      { use: 'old', type: MR, value: 'OLD-1' },
      { type: MR, value: 'SYN-004127' },
    ]
    assert.deepEqual(chooseRecordNumber(readPerson(patient({ identifier }))), {
      label: 'MRN',
      value: 'SYN-004127',
    })
  })

  it('returns the FHIR id with its label if there is no record number', () => {
    assert.deepEqual(chooseRecordNumber(readPerson(patient({ identifier: [{ value: '1' }, null, 'x'] }))), {
      label: 'FHIR id',
      value: 'p1',
    })
  })
})

describe('birth and death', () => {
  it('reads the time of birth from its extension', () => {
    const extension = [
      {
        url: 'http://hl7.org/fhir/StructureDefinition/patient-birthTime',
        valueDateTime: '2026-11-13T04:00:00Z',
      },
    ]
    const baby = readPerson(patient({ birthDate: '2026-11-13', _birthDate: { extension } }))
    assert.equal(computeAge(baby, NOW), '10 hours')
  })

  it('shows the age at death', () => {
    const edith = readPerson(patient({ birthDate: '1944-08-11', deceasedDateTime: '2025-02-02T03:00:00Z' }))
    assert.equal(computeAge(edith, NOW), '80 at death')
    assert.equal(formatDeath(edith), 'Died 02-Feb-2025')
  })

  it('does not guess an age if only the fact of death is known', () => {
    const person = readPerson(patient({ birthDate: '1944-08-11', deceasedBoolean: true }))
    assert.equal(computeAge(person, NOW), 'Not known')
    assert.equal(formatDeath(person), 'Died')
  })

  it('does not show a death for a living patient', () => {
    assert.equal(formatDeath(readPerson(patient({ deceasedBoolean: false }))), undefined)
  })
})

describe('findAlike', () => {
  const alike: readonly (readonly [Person, Person])[] = [
    [named('Juniper', 'Alba'), named('Juniper', 'Alban')],
    [named('Juniper', 'Alba'), named('Juniper', 'Alba', 'another')],
    [named('Núñez', 'José'), named('Nunez', 'Jose', 'another')],
    [named("O'Brien", 'Sean'), named('OBrien', 'Shean')],
    [named('Rowan', 'Idris'), named('Rowan', 'Irdis')],
    [named('Slate', 'Catherine'), named('Slate', 'Katharine')],
    [named('Slate', 'Alex Maria'), named('Slate', 'Alexander')],
  ]
  for (const [a, b] of alike) {
    it(`finds ${formatName(b.name)} for ${formatName(a.name)}`, () => {
      assert.deepEqual(findAlike(a, [b]), [b])
      assert.deepEqual(findAlike(b, [a]), [a])
    })
  }

  const different: readonly (readonly [Person, Person])[] = [
    [named('Juniper', 'Alba'), named('Alder', 'Alba')],
    [named('Rowan', 'Idris'), named('Rowan', 'Maren')],
    [named('Rowan', 'Al'), named('Rowan', 'Bo')],
    [named('Rowan', 'Al'), named('Rowan', 'Alexandra')],
    [named('Rowan', 'Idris', 'same'), named('Rowan', 'Idris', 'same')],
    [named('', 'Idris'), named('', 'Idris', 'another')],
    [
      { id: 'a', name: { family: 'Rowan' } },
      { id: 'b', name: { family: 'Rowan' } },
    ],
  ]
  for (const [a, b] of different) {
    it(`does not find ${formatName(b.name)} (${b.id}) for ${formatName(a.name)} (${a.id})`, () => {
      assert.deepEqual(findAlike(a, [b]), [])
    })
  }

  it('finds similar patients in a list', () => {
    const [alba, alban, other] = [
      named('Juniper', 'Alba'),
      named('Juniper', 'Alban'),
      named('Slate', 'Nadia'),
    ]
    assert.deepEqual(findAlike(alba, [alba, alban, other]), [alban])
    assert.deepEqual(findConfusable([alba, other, alban]), new Set([alba, alban]))
  })

  it('compares the first 100 characters, so that long names take no longer (LIMIT-7)', () => {
    const makePair = (letters: number) => [
      named('Juniper', 'a'.repeat(letters), '1'),
      named('Juniper', 'b'.repeat(letters), '2'),
    ]
    const grown = measureGrowth(letters => findConfusable(makePair(letters)), 500)
    assert.ok(grown < 8, `${grown} times as long`)
  })
})

describe('renderPatientBanner', () => {
  const alba = readPerson(
    patient({
      name: [{ family: 'Juniper', given: ['Alba'], prefix: ['Ms'] }],
      birthDate: '1958-03-14',
      gender: 'female',
    }),
  )

  it('shows name, born (age), sex and number in this order', () => {
    const { markup } = renderPatientBanner(alba, { now: NOW, heading: 'h2', id: 'picked' })
    const order = [
      'id="picked"',
      'Juniper',
      'Alba',
      '(Ms)',
      'Born',
      '14-Mar-1958',
      '(68 years)',
      'Sex',
      'Female',
      'FHIR id',
      'p1',
    ]
    const places = order.map(text => markup.indexOf(text))
    assert.ok(places.every(place => place >= 0))
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
    )
  })

  it('shows which facts are missing', () => {
    const { markup } = renderPatientBanner({ id: 'x', name: {} }, { now: NOW, heading: 'h1' })
    assert.equal(markup.match(/Not recorded/g)?.length, 2)
    assert.match(markup, /Name not recorded/)
  })

  it('shows a death beside the name', () => {
    const dead: Person = { ...alba, death: { date: '2025-02-02' } }
    const { markup } = renderPatientBanner(dead, { now: NOW, heading: 'p' })
    assert.match(markup, /<span class="patient__mark">Died 02-Feb-2025<\/span>/)
    assert.match(markup, /<dt>Age at death<\/dt><dd>66 years<\/dd>/)
  })

  it('shows that the record is not in use', () => {
    const read = (active?: boolean) =>
      readPerson({ resourceType: 'Patient', id: 'x', ...(active === undefined ? {} : { active }) })
    const render = (person: Person) => renderPatientBanner(person, { now: NOW, heading: 'p' }).markup
    assert.match(render(read(false)), /<span class="patient__mark">Inactive record<\/span>/)
    for (const active of [true, undefined]) assert.doesNotMatch(render(read(active)), /Inactive/)
  })
})

describe('renderAlikeWarning', () => {
  const alba: Person = { ...named('Juniper', 'Alba'), born: '1985-03-14', mrn: 'SYN-1' }
  const warn = (others: readonly Person[], isForPatients?: boolean) =>
    String(renderAlikeWarning(alba, others, isForPatients)).replace(/<[^>]+>/g, '')

  it('names the others with their birth dates and numbers', () => {
    const alban = { ...named('Juniper', 'Alban', 'p2'), born: '1985-03-14' }
    assert.equal(warn([alban]), 'Similar name: Juniper, Alban, born 14-Mar-1985, FHIR id p2')
    assert.equal(warn([alban], true), 'Similar name: Juniper, Alban, born 14-Mar-1985')
  })

  it('says if the name and the birth date are the same, so that only the number differs', () => {
    const twin = { ...alba, id: 'p3', name: { family: 'JUNIPER', given: 'Alba' }, mrn: 'SYN-2' }
    const namesake = { ...twin, born: '1985-03-15' }
    assert.equal(
      warn([twin, namesake]),
      'Similar name: JUNIPER, Alba, born 14-Mar-1985, MRN SYN-2 (same name and birth date); JUNIPER, Alba, born 15-Mar-1985, MRN SYN-2',
    )
    assert.match(warn([twin], true), /, record number SYN-2 \(same name and birth date\)$/)
  })

  it('renders nothing if there are none', () => {
    assert.equal(renderAlikeWarning(alba, []), undefined)
  })
})

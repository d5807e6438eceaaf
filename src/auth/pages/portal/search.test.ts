import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { measureGrowth } from '../../../../test/support/growth.ts'
import { readPerson } from '../../../web/person/index.ts'
import { completeNumber } from '../../patients/record-number.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { patient } from '../../testing/test-fhir-server.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { describeList, describeMatches } from '../parts/patient-list.ts'

const RESOURCES = [
  patient('juniper', 'Juniper', 'Alba', {
    identifier: [{ type: { coding: [{ code: 'MR' }] }, value: 'SYN-004127' }],
  }),
  patient('juniper2', 'Juniper', 'Alban'),
  patient('limestone', 'Limestone', 'Edith'),
  patient('seven', 'Seven7', 'Ada'),
  { resourceType: 'Patient', id: 'nameless' },
]

function idsIn(body: string): readonly string[] {
  return [...body.matchAll(/data-patient-id="([^"]*)"/g)].map(match => match[1] ?? '')
}

describe('GET /portal with a search', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open(), { resources: RESOURCES })
    browser = await auth.logIn()
  })

  it('sends the search text encoded, and shows it escaped (PORTAL-4)', async () => {
    const search = `a&b=c|d,e\\f$<script>"'#%é`
    auth.fhir.requests.length = 0
    const page = await browser.get(`/portal?search=${encodeURIComponent(search)}`)
    const [asked] = auth.fhir.requests
    const sent = `a&b=c\\|d\\,e\\\\f\\$<script>"'#%é`
    assert.equal(asked?.url.searchParams.get('name'), `${sent},${sent.replace("'", '’')}`)
    assert.deepEqual([...(asked?.url.searchParams.keys() ?? [])], ['name', '_count', '_sort'])
    assert.doesNotMatch(page.body, /<script>/)
    assert.ok(page.body.includes('value="a&amp;b=c|d,e\\f$&lt;script&gt;&quot;&#39;#%é"'))
    assert.match(page.body, /No patient matches “a&amp;b/)
    assert.match(page.body, /type only the beginning of a name/)
    assert.match(page.body, /Show the first 20 patients/)
  })

  it('keeps the search in the heading of the list, and the patient when it is cleared', async () => {
    const { body } = await browser.get('/portal?search=juniper&patient=limestone&client=demo')
    assert.match(
      body,
      /<h2>2 patients match “juniper”<\/h2> <a href="\/portal\?patient=limestone&amp;client=demo">/,
    )
    assert.equal(body.match(/match “juniper”/g)?.length, 1)
    assert.doesNotMatch((await browser.get('/portal')).body, /Clear search/)
  })

  it('finds a name with either apostrophe (PORTAL-4)', async () => {
    const resources = [patient('straight', "O'Hara", 'Ada'), patient('curved', 'O’Hara', 'Bea')]
    const other = await (await TestAuthServer.open(await open(), { resources })).logIn()
    for (const text of ["O'Hara", 'O’Hara'])
      assert.deepEqual(
        idsIn((await other.get(`/portal?search=${encodeURIComponent(text)}`)).body),
        ['straight', 'curved'],
        text,
      )
  })

  it('finds a FHIR id, and an MRN without digits, beside names (PORTAL-4)', async () => {
    const resources = [
      patient('plain-id', 'Ashlar', 'Tobias'),
      patient('x1', 'Basalt', 'Una', { identifier: [{ value: 'ASHLAR' }] }),
    ]
    const other = await (await TestAuthServer.open(await open(), { resources })).logIn()
    const find = async (text: string) => idsIn((await other.get(`/portal?search=${text}`)).body)
    assert.deepEqual(await find('plain-id'), ['plain-id'])
    assert.deepEqual(await find('x1'), ['x1'])
    assert.deepEqual(await find('ASHLAR'), ['plain-id', 'x1'], 'the name of one, and the MRN of the other')
    assert.deepEqual(await find('nobody'), [])
  })

  it('searches by name, with its parts in any order (PORTAL-4)', async () => {
    const found = await browser.get('/portal?search=Limestone')
    assert.deepEqual(idsIn(found.body), ['limestone'])
    assert.match(found.body, /<h2>1 patient matches “Limestone”<\/h2> <a href="\/portal">Clear search<\/a>/)
    assert.deepEqual(idsIn((await browser.get('/portal?search=edith,%20limestone')).body), ['limestone'])
    // The one whose name is kept as one text is found with those whose names are in parts, in every order.
    const resources = [
      ...RESOURCES,
      { resourceType: 'Patient', id: 'whole', name: [{ text: 'Alba Juniper', family: 'Juniper' }] },
    ]
    const other = await (await TestAuthServer.open(await open(), { resources })).logIn()
    const ids = ['juniper', 'juniper2', 'whole']
    for (const text of ['alba juniper', 'juniper alba']) {
      const { body } = await other.get(`/portal?search=${encodeURIComponent(text)}`)
      assert.deepEqual(idsIn(body).toSorted(), ids, text)
      assert.ok(body.includes(`3 patients match “${text}”<`), text)
    }
    assert.deepEqual(idsIn((await browser.get('/portal?search=%20%20')).body).length, 5)
  })

  it('finds a later part of a double-barrelled name, in one more request (PORTAL-4)', async () => {
    const resources = [...RESOURCES, patient('double', 'Feldspar-Quartermaine', 'Anna')]
    const other = await TestAuthServer.open(await open(), { resources })
    const user = await other.logIn()
    const find = async (text: string) => {
      other.fhir.requests.length = 0
      const ids = idsIn((await user.get(`/portal?search=${encodeURIComponent(text)}`)).body)
      return { ids, parts: other.fhir.requests.filter(({ url }) => url.search.includes(':contains')).length }
    }
    for (const text of ['quartermaine', 'Feldspar Quartermaine', 'anna quarter'])
      assert.deepEqual(await find(text), { ids: ['double'], parts: 1 }, text)
    assert.deepEqual(await find('feldspar'), { ids: ['double'], parts: 0 })
    // Two letters are part of too many names.
    assert.deepEqual(await find('ua'), { ids: [], parts: 0 })
    other.fhir.refuse('name:contains')
    assert.deepEqual(await find('quartermaine'), { ids: [], parts: 1 })
  })

  it('requests matches by family name, and accepts any order from a server that cannot sort', async () => {
    auth.fhir.requests.length = 0
    await browser.get('/portal?search=Limestone')
    assert.deepEqual(queries(), [
      '?identifier=Limestone&_count=20&_sort=family,given',
      '?name=Limestone&_count=20&_sort=family,given',
      '?family=limestone&_total=none&_count=200',
    ])
    auth.fhir.refuse('_sort')
    auth.fhir.requests.length = 0
    const found = await browser.get('/portal?search=Limestone')
    auth.fhir.refuse(undefined)
    assert.deepEqual(idsIn(found.body), ['limestone'])
    assert.deepEqual(
      queries().filter(query => query.startsWith('?name=')),
      ['&_sort=family,given', '&_sort=family', ''].map(order => `?name=Limestone&_count=20${order}`),
    )

    function queries() {
      return auth.fhir.requests.map(({ url }) => url.search)
    }
  })

  it('accepts at most 200 characters and 20 words', async () => {
    assert.match((await browser.get('/portal')).body, /<input[^>]* name="search"[^>]* maxlength="200"/)
    for (const search of ['x'.repeat(200), Array(20).fill('x').join(' ')])
      assert.equal((await browser.get(`/portal?search=${encodeURIComponent(search)}`)).statusCode, 200)
    for (const search of ['x'.repeat(201), Array(21).fill('x').join(' ')]) {
      const refused = await browser.get(`/portal?search=${encodeURIComponent(search)}`)
      assert.equal(refused.statusCode, 400)
      assert.match(refused.body, /A search for patients has at most 200 characters and 20 words\./)
    }
  })

  it('searches a single word by MRN, name and FHIR id (PORTAL-4)', async () => {
    const found = await browser.get('/portal?search=SYN-004127')
    assert.deepEqual(idsIn(found.body), ['juniper'])
    assert.match(found.body, /1 patient matches “SYN-004127”</)
    assert.deepEqual(idsIn((await browser.get('/portal?search=seven7')).body), ['seven'])
    auth.fhir.requests.length = 0
    await browser.get('/portal?search=a%7C1')
    assert.equal(auth.fhir.requests[0]?.url.searchParams.get('identifier'), 'a\\|1')
    assert.match((await browser.get('/portal')).body, /Find a patient by name or MRN, or by birth date</)
  })

  it('finds a patient by part of an MRN (PORTAL-4)', async () => {
    for (const part of ['4127', 'syn-0041', 'syn 0041', '004 127'])
      assert.deepEqual(idsIn((await browser.get(`/portal?search=${part}`)).body), ['juniper'], part)
    // Another server: the digits are completed to a number like those of other patients.
    auth.fhir.refuse('identifier:contains')
    for (const part of ['4127', 'syn 4127', 'SYN4127'])
      assert.deepEqual(idsIn((await browser.get(`/portal?search=${part}`)).body), ['juniper'], part)
    assert.match((await browser.get('/portal?search=4128')).body, /No patient matches “4128”/)
    auth.fhir.refuse(undefined)
  })

  it('finds an MRN with other separators, in small letters, with its label or a name (PORTAL-4)', async () => {
    auth.fhir.refuse('identifier:contains')
    for (const text of [
      'syn 004127',
      'syn004127',
      'Syn.004127',
      'SYN–004127',
      'MRN SYN-004127',
      'mrn: syn 004127',
      'juniper SYN-004127',
      'Juniper, Alba syn004127',
    ])
      assert.deepEqual(
        idsIn((await browser.get(`/portal?search=${encodeURIComponent(text)}`)).body),
        ['juniper'],
        text,
      )
    auth.fhir.refuse(undefined)
  })

  it('completes a number in time that is linear in the length of the example (LIMIT-7)', () => {
    assert.equal(completeNumber('4127', 'A7-000001'), 'A7-004127')
    const grown = measureGrowth(digits => completeNumber('1', `${'0'.repeat(digits)}x`), 3_000)
    assert.ok(grown < 8, `${grown} times as long`)
  })

  it('finds patients by birth date in the usual notations, alone and with a name (PORTAL-4)', async () => {
    const birthDate = '1990-04-03'
    const resources = [
      ...RESOURCES,
      patient('april', 'Alder', 'Kim', { birthDate }),
      patient('other', 'Ashlar', 'Kim', { birthDate }),
    ]
    const other = await (await TestAuthServer.open(await open(), { resources })).logIn()
    const find = async (text: string) =>
      idsIn((await other.get(`/portal?search=${encodeURIComponent(text)}`)).body)
    for (const text of [
      '1990-04-03',
      '03-Apr-1990',
      '3 April 1990',
      'April 3, 1990',
      '3.4.1990',
      '03.04.1990',
      '03/04/1990',
      '04/03/1990',
      '3 / 4 / 1990',
      '03 04 1990',
      '1990/04/03',
      '3.4.90',
      '03-Apr-90',
      '3/Apr/1990',
      '03apr1990',
      '19900403',
      '03041990',
      'DOB 03.04.1990',
      'Apr 1990',
    ])
      assert.deepEqual(await find(text), ['april', 'other'], text)
    for (const text of ['alder 3-Apr-1990', '03.04.1990 kim alder'])
      assert.deepEqual(await find(text), ['april'], text)
  })

  it('finds a name with a year of birth, though the name is, or begins like, a month (PORTAL-4)', async () => {
    const resources = [
      patient('juniper', 'Juniper', 'Alba', { birthDate: '1985-03-14' }),
      patient('mary', 'Alder', 'Mary', { birthDate: '1985-11-02' }),
      patient('april', 'Cedar', 'April', { birthDate: '1990-11-02' }),
      patient('spring', 'Larch', 'Kim', { birthDate: '1990-04-03' }),
    ]
    const other = await (await TestAuthServer.open(await open(), { resources })).logIn()
    const find = async (text: string) =>
      idsIn((await other.get(`/portal?search=${encodeURIComponent(text)}`)).body)
    for (const text of ['juniper 1985', '1985 juniper', 'Juniper, Alba 1985'])
      assert.deepEqual(await find(text), ['juniper'], text)
    assert.deepEqual(await find('mary 1985'), ['mary'])
    assert.deepEqual(await find('April 1990'), ['april', 'spring'])
    assert.deepEqual(await find('kim Apr 1990'), ['spring'])
    assert.deepEqual(await find('juniper 1986'), [])
  })

  it('says that there is no such date, or which dates were searched, if it finds nobody (PORTAL-4)', async () => {
    const read = async (text: string) =>
      (await browser.get(`/portal?search=${encodeURIComponent(text)}`)).body
    for (const date of ['31/02/1990', '1990-02-31', '31 Feb 1990', '31.13.90'])
      for (const text of [date, `juniper ${date}`])
        assert.ok((await read(text)).includes(`<p>There is no date ${date}. Check`), text)
    assert.match(
      await read('03/04/1990'),
      /<p>Searched for the birth dates 03-Apr-1990 and 04-Mar-1990\. Check/,
    )
    for (const text of ['14/03/1990', '31021990', 'juniper 1990', 'Nobody'])
      assert.match(await read(text), /No patient matches “[^”]*”\.<\/h2> <p>Check/, text)
  })

  it('finds both readings of day and month, and both centuries of a short year', async () => {
    const born = ['1912-04-03', '1912-03-04', '2012-04-03', '2012-03-04']
    const resources = born.map(birthDate => patient(`b${birthDate}`, 'Alder', birthDate, { birthDate }))
    const other = await (await TestAuthServer.open(await open(), { resources })).logIn()
    const find = async (text: string) => (await other.get(`/portal?search=${text}`)).body
    const both = await find('03041912')
    assert.deepEqual(idsIn(both), ['b1912-03-04', 'b1912-04-03'])
    assert.match(
      both,
      /<h2>2 patients match[\s\S]*<p>Searched for the birth dates 03-Apr-1912 and 04-Mar-1912\.\s*<\/p>[\s\S]*<ol/,
    )
    assert.deepEqual(idsIn(await find('03/04/12')), born.map(date => `b${date}`).toSorted())
    assert.doesNotMatch(await find('1912-04-03'), /Searched for/)
  })

  it('finds an MRN with the digits of a date beside birth dates, and asks for no id that is a birth date', async () => {
    const resources = [
      patient('born', 'Alder', 'Kim'),
      patient('numbered', 'Basalt', 'Una', {
        birthDate: '1990-01-01',
        identifier: [{ value: 'H-14031958' }],
      }),
      patient('1958', 'Cedar', 'Ada', { birthDate: '1990-01-01' }),
    ]
    const other = await TestAuthServer.open(await open(), { resources })
    const user = await other.logIn()
    const find = async (text: string) => idsIn((await user.get(`/portal?search=${text}`)).body)
    assert.deepEqual(await find('14031958'), ['born', 'numbered'])
    assert.deepEqual(await find('1958'), ['born', 'numbered', '1958'])
    other.fhir.requests.length = 0
    for (const date of ['14031958', '14.03.1958', '1958-03-14']) await find(date)
    assert.deepEqual(
      other.fhir.requests.filter(({ url }) => url.searchParams.has('_id')),
      [],
    )
  })

  it('suggests the recorded spelling of a name that nobody has, in few requests (PORTAL-13)', async () => {
    const suggest = async (text: string) => {
      auth.fhir.requests.length = 0
      const { body } = await browser.get(`/portal?search=${encodeURIComponent(text)}&client=demo`)
      assert.match(body, /No patient matches/, text)
      assert.ok(auth.fhir.requests.length <= 7, `${auth.fhir.requests.length} requests`)
      return [...body.matchAll(/<a href="([^"]*)"><bdi>([^<]*)<\/bdi><\/a>/g)].map(([, href, name]) => [
        href,
        name,
      ])
    }
    for (const text of [
      'Junpier',
      'yuniper',
      'Jumiper',
      'Jniper',
      'Juuniper',
      'Junipper',
      'JUNIPRE',
      'juniprr',
    ])
      assert.deepEqual(await suggest(text), [['/portal?search=Juniper&amp;client=demo', 'Juniper']], text)
    assert.deepEqual(await suggest('Limestome'), [['/portal?search=Limestone&amp;client=demo', 'Limestone']])
    assert.deepEqual(await suggest('junpier, Alban'), [
      ['/portal?search=Juniper+Alban&amp;client=demo', 'Juniper Alban'],
    ])
    assert.deepEqual(await suggest('Limestone Edihth'), [
      ['/portal?search=Limestone+Edith&amp;client=demo', 'Limestone Edith'],
    ])
    for (const text of ['Basalt', 'Jun1per', 'Jxx', 'a b c', "'; drop"])
      assert.deepEqual(await suggest(text), [], text)
  })

  it('suggests nothing, and says how to search, if the server cannot look for other names (PORTAL-13)', async () => {
    auth.fhir.refuse('_total')
    const { body } = await browser.get('/portal?search=Junpier')
    auth.fhir.refuse(undefined)
    assert.match(body, /No patient matches “Junpier”[\s\S]*Check the spelling/)
    assert.doesNotMatch(body, /Did you mean/)
  })

  it('does not take a part of the patients for all of them, nor none for nobody (PORTAL-3)', async () => {
    auth.fhir.cut(1)
    const part = await browser.get('/portal')
    assert.match(part.body, /The FHIR server did not return all of them/)
    auth.fhir.cut(0)
    const none = await browser.get('/portal')
    auth.fhir.cut(undefined)
    assert.doesNotMatch(none.body, /No patients/)
    assert.match(none.body, /The FHIR server did not return all patients that you may see/)
  })

  it('searches by name if the server does not support MRN searches', async () => {
    auth.fhir.refuse('identifier')
    const found = await browser.get('/portal?search=seven7')
    auth.fhir.refuse(undefined)
    assert.deepEqual(idsIn(found.body), ['seven'])
  })
})

describe('describeList', () => {
  const person = readPerson(patient('juniper', 'Juniper', 'Alba'))
  const list = {
    kind: 'list',
    recent: [person],
    patients: [person, person],
    from: 1,
    isCut: false,
    isSorted: true,
    similar: { ids: new Set<string>(), isComplete: true },
  } as const
  const counted = { ...list, total: 9, hasMore: true, next: 'Patient?page=2' }
  const uncounted = { ...counted, total: undefined }

  it('says which part of the list a page is, and how many patients there are if the server counts them (PORTAL-3)', () => {
    assert.equal(describeList(counted, undefined), 'Patients 1 to 2 of 9, by family name.')
    assert.equal(describeMatches({ ...counted, from: 8 }, 'jun'), 'Patients 8 to 9 of 9 match “jun”')
    assert.equal(describeList(uncounted, undefined), 'Patients 1 to 2, by family name.')
    const unplaced = { ...uncounted, from: undefined }
    assert.equal(describeList(unplaced, undefined), '2 patients on this page, by family name.')
    assert.equal(describeMatches(unplaced, 'jun'), '2 patients on this page match “jun”')
    const whole = { ...list, total: 2, hasMore: false }
    assert.equal(describeList(whole, undefined), '2 patients, by family name.')
  })

  it('describes the last page too', () => {
    const last = { ...list, from: 21, total: undefined, hasMore: false, previous: 'Patient?page=1' }
    assert.equal(describeMatches(last, 'jun'), 'Patients 21 to 22 match “jun”')
    assert.equal(describeMatches({ ...last, patients: [person] }, 'jun'), 'Patient 21 matches “jun”')
  })

  it('says that there are others if the server has no links to pages', () => {
    const { next: _, ...unlinked } = uncounted
    assert.equal(describeList(unlinked, 'jun'), 'Type more of the name to find the others.')
    assert.equal(describeList(unlinked, undefined), 'Patients 1 to 2. Search to find the others.')
  })

  it('says that patients are missing if the server says so (PORTAL-3)', () => {
    const cut = { ...list, total: undefined, hasMore: true, isCut: true }
    assert.equal(
      describeList(cut, undefined),
      'Patients 1 to 2. The FHIR server did not return all of them. Search to find the others.',
    )
    assert.equal(
      describeList(cut, 'jun'),
      'The FHIR server did not return all of them. Type more of the name to find the others.',
    )
  })
})

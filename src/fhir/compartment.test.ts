import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { fullResource } from '../../test/support/r4-resources.ts'
import { countRuns } from '../../test/support/thorough.ts'
import { isRecord } from '../core/index.ts'
import {
  findCompartmentPatients,
  findContainedPatients,
  findReferredPatients,
  listCompartmentParameters,
  namesOtherPatient,
  UNKNOWN_PATIENT,
} from './compartment.ts'
import { definitions, findSearchParameter, resourceTypes } from './definitions.ts'
import { isResource, type Resource } from './resource.ts'
import { indexParameter } from './search/index-entries.ts'

const base = 'http://localhost:8080/fhir'
const patients = (resource: Resource) => [...findCompartmentPatients(resource, base)].toSorted()

/** R4 CompartmentDefinition patient, 4.0.1, with the differences of PATIENT-2. */
const membership = `Account subject · AdverseEvent subject · AllergyIntolerance patient,recorder,asserter ·
  Appointment actor · AppointmentResponse actor · AuditEvent patient · Basic patient,author · BodyStructure patient ·
  CarePlan patient,performer · CareTeam patient,participant · ChargeItem subject · Claim patient,payee ·
  ClaimResponse patient · ClinicalImpression subject · Communication subject,sender,recipient ·
  CommunicationRequest subject,sender,recipient,requester · Composition subject,author,attester ·
  Condition patient,asserter · Consent patient · Coverage policy-holder,subscriber,beneficiary,payor ·
  CoverageEligibilityRequest patient · CoverageEligibilityResponse patient · DetectedIssue patient · Device patient ·
  DeviceRequest subject,performer · DeviceUseStatement subject · DiagnosticReport subject ·
  DocumentManifest subject,author,recipient · DocumentReference subject,author · Encounter patient ·
  EnrollmentRequest subject · EpisodeOfCare patient · ExplanationOfBenefit patient,payee ·
  FamilyMemberHistory patient · Flag patient · Goal patient · ImagingStudy patient · Immunization patient ·
  ImmunizationEvaluation patient · ImmunizationRecommendation patient · Invoice subject,patient,recipient ·
  List subject,source · MeasureReport patient · Media subject · MedicationAdministration patient,performer,subject ·
  MedicationDispense subject,patient,receiver · MedicationRequest subject · MedicationStatement subject ·
  MolecularSequence patient · NutritionOrder patient · Observation subject,performer · Person patient ·
  Procedure patient,performer · Provenance patient · QuestionnaireResponse subject,author · RelatedPerson patient ·
  RequestGroup subject,participant · ResearchSubject individual · RiskAssessment subject · Schedule actor ·
  ServiceRequest subject,performer · Specimen subject · SupplyDelivery patient · SupplyRequest subject ·
  Task patient,focus · VisionPrescription patient`

describe('listCompartmentParameters', () => {
  it('is the table of R4 with the differences of PATIENT-2 (PATIENT-2)', () => {
    const expected = membership.split('·').map(row => {
      const [type, codes] = row.trim().split(' ')
      return [type, codes?.split(',')]
    })
    const actual = resourceTypes.flatMap(type => {
      const codes = listCompartmentParameters(type)
      return codes.length === 0 ? [] : [[type, codes]]
    })
    assert.deepEqual(actual, expected)
  })

  it('is empty for names of inherited members', () => {
    for (const type of ['constructor', '__proto__', 'toString', 'Nonsense'])
      assert.deepEqual(listCompartmentParameters(type), [], type)
  })

  it('names only reference parameters that the type has', () => {
    for (const type of resourceTypes) {
      for (const code of listCompartmentParameters(type)) {
        assert.equal(findSearchParameter(type, code)?.type, 'reference', `${type}.${code}`)
      }
    }
  })

  it('ignores Patient.link and Group.member (PATIENT-2)', () => {
    assert.deepEqual(definitions.patientCompartment.Patient, ['link'])
    assert.deepEqual(listCompartmentParameters('Patient'), [])
    assert.deepEqual(listCompartmentParameters('Group'), [])
  })
})

describe('findCompartmentPatients', () => {
  it('is the patient itself, without linked patients', () => {
    const link = [{ other: { reference: 'Patient/2' }, type: 'seealso' }]
    assert.deepEqual(patients({ resourceType: 'Patient', id: '1', link }), ['1'])
    assert.deepEqual(patients({ resourceType: 'Patient', link }), [])
  })

  it('is every patient that a compartment parameter refers to', () => {
    assert.deepEqual(patients({ resourceType: 'Condition', subject: { reference: 'Patient/1' } }), ['1'])
    const asserter = { reference: `${base}/Patient/2` }
    assert.deepEqual(patients({ resourceType: 'Condition', subject: { reference: 'Patient/1' }, asserter }), [
      '1',
      '2',
    ])
    const participant = [{ actor: { reference: 'Patient/3' } }, { actor: { reference: 'Practitioner/4' } }]
    assert.deepEqual(patients({ resourceType: 'Appointment', participant }), ['3'])
  })

  it('strips the version of a reference', () => {
    assert.deepEqual(
      patients({ resourceType: 'Encounter', subject: { reference: 'Patient/1/_history/3' } }),
      ['1'],
    )
  })

  for (const reference of [
    '#p',
    'urn:uuid:c757873d-ec9a-4326-a141-556f43239520',
    'http://other.example/fhir/Patient/1',
    'Group/1',
    'Patient?identifier=1',
    'Patient/1/Condition',
  ]) {
    it(`is empty for a subject ${reference}`, () => {
      assert.deepEqual(patients({ resourceType: 'Observation', subject: { reference, type: 'Patient' } }), [])
    })
  }

  it('is empty for an identifier or a contained patient (PATIENT-3)', () => {
    const contained = [{ resourceType: 'Patient', id: '1' }]
    assert.deepEqual(
      patients({ resourceType: 'Observation', contained, subject: { identifier: { value: '1' } } }),
      [],
    )
  })

  it('is empty for references outside the compartment parameters', () => {
    const elsewhere = { reference: 'Patient/1' }
    assert.deepEqual(patients({ resourceType: 'Observation', focus: [elsewhere] }), [])
    assert.deepEqual(patients({ resourceType: 'Group', member: [{ entity: elsewhere }] }), [])
    assert.deepEqual(patients({ resourceType: 'Practitioner', id: '1' }), [])
    assert.deepEqual(
      patients({ resourceType: 'Bundle', entry: [{ resource: { resourceType: 'Patient', id: '1' } }] }),
      [],
    )
  })

  it('uses patient for a Device and securityContext for a Binary (PATIENT-2)', () => {
    assert.deepEqual(patients({ resourceType: 'Device', patient: { reference: 'Patient/1' } }), ['1'])
    assert.deepEqual(patients({ resourceType: 'Binary', securityContext: { reference: 'Patient/1' } }), ['1'])
    assert.deepEqual(patients({ resourceType: 'Binary', securityContext: { reference: 'Encounter/1' } }), [])
    assert.deepEqual(patients({ resourceType: 'Binary', securityContext: { reference: '#1' } }), [])
    for (const securityContext of [
      undefined,
      null,
      'Patient/1',
      { display: 'x' },
      { reference: ['Patient/1'] },
    ])
      assert.deepEqual(patients({ resourceType: 'Binary', securityContext }), [])
  })

  it('is empty for content of the wrong form', () => {
    for (const subject of [
      null,
      'Patient/1',
      ['Patient/1'],
      { reference: ['Patient/1'] },
      { reference: 1 },
      7,
    ]) {
      for (const resourceType of ['Condition', 'Observation', 'Encounter', 'MedicationRequest']) {
        assert.deepEqual(
          patients({ resourceType, subject }),
          [],
          `${resourceType} ${JSON.stringify(subject)}`,
        )
      }
    }
    assert.deepEqual(patients({ resourceType: 'Nonsense', subject: { reference: 'Patient/1' } }), [])
  })
})

const reference = fc
  .tuple(
    fc.constantFrom('', '', `${base}/`, `${base}//`, `${base}/Group/1/`, 'http://other.test/fhir/', 'urn:'),
    fc.constantFrom('Patient', 'Patient', 'Group', 'patient', 'Nonsense'),
    fc.constantFrom('/1', '/2', '/3/_history/1', '/%31', '/1/', '?name=x', '/'),
  )
  .map(parts => parts.join(''))
const referenceElement = fc.oneof(
  { weight: 4, arbitrary: fc.record({ reference, type: fc.constantFrom(undefined, 'Patient', 'Group') }) },
  { weight: 1, arbitrary: fc.array(fc.record({ reference }), { maxLength: 3 }) },
  fc.record({ identifier: fc.constant({ value: '1' }), type: fc.constant('Patient') }),
  fc.constantFrom<unknown>(null, 'Patient/1', {}, [[{ reference: 'Patient/1' }]], {
    reference: ['Patient/1'],
  }),
)
const memberTypes = resourceTypes.filter(type => listCompartmentParameters(type).length > 0)

/** A resource with every element of its type, whose references are these. */
function referTo(type: string, variant: number, references: readonly unknown[]): Resource {
  let at = 0
  const resource: unknown = JSON.parse(JSON.stringify(fullResource(type, variant)), (_name, value) =>
    isRecord(value) && Object.keys(value).join() === 'reference'
      ? references[at++ % references.length]
      : value,
  )
  assert(isResource(resource))
  return resource
}

describe('the patients of a resource with any references', () => {
  const resources = fc
    .tuple(fc.constantFrom(...memberTypes), fc.nat(11), fc.array(referenceElement, { minLength: 1 }))
    .map(parts => referTo(...parts))

  it('are those that the search parameters of the compartment find', () => {
    fc.assert(
      fc.property(resources, resource => {
        const found = listCompartmentParameters(resource.resourceType).flatMap(code => {
          const parameter = findSearchParameter(resource.resourceType, code)
          const entries = parameter ? indexParameter(resource, parameter, base) : []
          return entries.flatMap(it =>
            it.kind === 'reference' && it.type === 'Patient' ? (it.id ?? []) : [],
          )
        })
        assert.deepEqual(patients(resource), [...new Set(found)].toSorted())
      }),
      { numRuns: countRuns(1_000) },
    )
  })

  it('are all found in a contained resource, also beside an unknown one', () => {
    fc.assert(
      fc.property(resources, resource => {
        const isUnknown = namesOtherPatient(resource, () => true, base)
        const contained = findContainedPatients({ resourceType: 'Basic', contained: [resource] }, base)
        assert.deepEqual([...contained].toSorted(), [
          ...(isUnknown ? [UNKNOWN_PATIENT] : []),
          ...patients(resource),
        ])
      }),
      { numRuns: countRuns(1_000) },
    )
  })
})

const names = (asserter: string) =>
  namesOtherPatient(
    {
      resourceType: 'Condition',
      subject: { reference: 'Patient/1' },
      asserter: { reference: asserter },
    },
    '1',
    base,
  )
const long = 'a'.repeat(64)

describe('namesOtherPatient', () => {
  it('finds another patient on this server and on others (WRITE-2)', () => {
    for (const reference of [
      'Patient/2',
      'Patient/2/_history/1',
      `${base}/Patient/2`,
      'http://other.test/fhir/Patient/1',
      'https://other.test/Patient/2/_history/1',
    ])
      assert.equal(names(reference), true, reference)
  })

  it('is false for the patient and for resources that are not patients', () => {
    for (const reference of [
      'Patient/1',
      `${base}/Patient/1`,
      'Practitioner/2',
      '#p',
      'http://other.test/fhir/Practitioner/2',
      'http://other.test/fhir/Practitioner/2/_history/1',
      `http://other.test/fhir/Practitioner/${long}`,
      `http://other.test/fhir/Practitioner/2/_history/${long}`,
    ])
      assert.equal(names(reference), false, reference)
  })

  it('is true if the subject has no type', () => {
    const names = (reference: string) =>
      namesOtherPatient({ resourceType: 'Condition', subject: { reference } }, '1', base)
    for (const reference of ['urn:uuid:3b5a1c70-0000-4000-8000-000000000000', 'Patient?identifier=1'])
      assert.equal(names(reference), true, reference)
    for (const reference of ['Patient/1', 'Group/1', '#p', 'http://other.test/fhir/Group/1'])
      assert.equal(names(reference), false, reference)
  })

  it('is true for unknown patients', () => {
    for (const reference of [
      'urn:uuid:3b5a1c70-0000-4000-8000-000000000000',
      'Patient?identifier=1',
      'http://other.test/fhir/Practitioner',
      `http://other.test/fhir/Practitioner/${long}a`,
      `http://other.test/fhir/Practitioner/2/_history/${long}a`,
      'http://other.test/fhir/Practitioner/2/_history/',
    ])
      assert.equal(names(reference), true, reference)
  })

  // Condition.patient is Condition.subject.where(resolve() is Patient).
  const subject = (reference: string, type?: string) =>
    namesOtherPatient(
      {
        resourceType: 'Condition',
        subject: { reference, ...(type !== undefined && { type }) },
        asserter: { reference: 'Patient/1' },
      },
      '1',
      base,
    )

  it('is true for references of unknown type, whatever Reference.type says', () => {
    for (const reference of [
      'urn:uuid:3b5a1c70-0000-4000-8000-000000000000',
      `${base}/Patient/2/`,
      `${base}/Patient/%32`,
    ])
      for (const type of [undefined, 'Group']) assert.equal(subject(reference, type), true, reference)
    for (const reference of ['Group/2', '#g', 'http://other.test/fhir/Group/2', 'Patient/1'])
      assert.equal(subject(reference), false, reference)
  })

  it('is false for a reference without a URL', () => {
    for (const subject of [{ identifier: { value: '2' } }, { reference: 5 }, { reference: '' }])
      assert.equal(namesOtherPatient({ resourceType: 'Condition', subject }, '1', base), false)
  })

  it('reads the security context of a Binary', () => {
    const binary = (securityContext?: unknown) =>
      namesOtherPatient({ resourceType: 'Binary', securityContext }, '1', base)
    for (const reference of ['Patient/2', 'http://other.test/fhir/Patient/1', 'urn:uuid:1', 'Patient?name=x'])
      assert.equal(binary({ reference }), true, reference)
    for (const reference of [
      'Patient/1',
      'Practitioner/2',
      'http://other.test/fhir/Practitioner/2',
      '#a',
      '',
      5,
    ])
      assert.equal(binary({ reference }), false, String(reference))
    for (const value of [undefined, 'Patient/2', {}]) assert.equal(binary(value), false)
  })
})

describe('findContainedPatients', () => {
  const find = (contained?: unknown) => [
    ...findContainedPatients(
      { resourceType: 'Condition', subject: { reference: 'Patient/1' }, contained },
      base,
    ),
  ]
  const condition = (id: string) => ({ resourceType: 'Condition', subject: { reference: `Patient/${id}` } })

  it('finds the patients of contained resources, at any depth', () => {
    assert.deepEqual(find(), [])
    assert.deepEqual(find([{ resourceType: 'Medication' }]), [])
    assert.deepEqual(find([condition('2')]), ['2'])
    assert.deepEqual(find([{ resourceType: 'Binary', securityContext: { reference: 'Patient/2' } }]), ['2'])
    assert.deepEqual(find([{ resourceType: 'Medication', contained: [condition('3')] }]), ['3'])
  })

  it('finds an unknown patient in content that cannot be read', () => {
    for (const contained of [{}, 'x', null, [5], [{ id: '1' }], [condition('2?name=x')]])
      assert.deepEqual(find(contained), [UNKNOWN_PATIENT], JSON.stringify(contained))
    assert.deepEqual(find([condition('2'), 'x']).sort(), [UNKNOWN_PATIENT, '2'])
    const target = [{ reference: 'urn:uuid:1' }, { reference: 'Patient/2' }]
    assert.deepEqual(find([{ resourceType: 'Provenance', target }]), [UNKNOWN_PATIENT, '2'])
  })
})

describe('findReferredPatients', () => {
  it('finds the patients of references in any element', () => {
    const find = (reference: unknown) => [...findReferredPatients({ a: [{ b: { reference } }] }, base)]
    for (const reference of ['Patient/2', 'Patient/2/_history/1', `${base}/Patient/2`])
      assert.deepEqual(find(reference), ['2'], reference)
    for (const reference of [
      'Patient?name=x',
      'http://other.test/fhir/Patient/2',
      'Patient/%32',
      '%50atient/2',
    ])
      assert.deepEqual(find(reference), [UNKNOWN_PATIENT], reference)
    for (const reference of [
      'Practitioner/2',
      'urn:uuid:patient',
      '#patient-1',
      'Practitioner?patient=2',
      'http://patients.test/Practitioner/2',
      5,
    ])
      assert.deepEqual(find(reference), [], String(reference))
  })
})

//! The machine for x86-64.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::ops::Range;

use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register,
};

use super::Question;

/// Most instructions that are followed for one question.
const MOST_STEPS: u32 = 50_000;

/// Most ways that are followed for one question.
const MOST_WAYS: usize = 512;

/// Most functions within each other.
const DEEPEST: usize = 64;

/// Most bytes that are remembered as written on one way.
const MOST_WRITTEN: usize = 1 << 14;

/// Most instructions that are kept.
const MOST_INSTRUCTIONS: usize = 1 << 18;

/// Longest instruction, in bytes.
const LONGEST: usize = 15;

/// Stack of the machine, in addresses that no process has.
const STACK: Range<u64> = (1 << 57) - (1 << 24)..1 << 57;

/// Address to which the outermost function returns.
const OUTSIDE: u64 = (1 << 57) + (1 << 32);

/// Mark of a pointer that was read from the wanted memory, and of every address that was computed from it.
const MARK: u64 = 1 << 60;

/// Smallest number that is taken for a pointer.
const LOWEST_POINTER: u64 = 4096;

/// Length of a function whose end nothing says, in bytes.
const LENGTH: u64 = 1 << 16;

/// Largest value that is taken for one that keeps another, in bytes.
const LARGEST: u64 = 1 << 16;

/// Registers that a called function may change: rax, rcx, rdx, rsi, rdi, r8 to r11.
const VOLATILE: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;

/// Follows code.
pub(crate) struct Machine {
    instructions: HashMap<u64, Option<Instruction>>,
    info: InstructionInfoFactory,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            instructions: HashMap::new(),
            info: InstructionInfoFactory::new(),
        }
    }
}

/// End of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A pointer in the wanted memory was used.
    Used,
    /// The function has returned, or never will.
    Over,
    /// It cannot be followed.
    Lost,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    zero: Option<bool>,
    sign: Option<bool>,
    carry: Option<bool>,
    overflow: Option<bool>,
}

/// Registers and written memory on one way.
#[derive(Clone)]
struct State {
    at: u64,
    registers: [Option<u64>; 16],
    vectors: [Option<u128>; 16],
    flags: Flags,
    written: HashMap<u64, Option<u8>>,
    /// Functions that it is in.
    functions: Vec<Range<u64>>,
}

impl Machine {
    /// Returns whether the function at `entry`, called with `argument`, uses a pointer in the wanted memory: follows it, or
    /// hands it to another function. Reading alone is no use, since the pointer of an enum also says which variant it is.
    pub(crate) fn uses(
        &mut self,
        question: &Question<'_>,
        entry: u64,
        argument: u64,
    ) -> Option<bool> {
        let mut run = Run {
            machine: self,
            question,
            steps: 0,
            ways: Vec::new(),
            seen: HashSet::new(),
        };
        let mut first = State {
            at: entry,
            registers: [None; 16],
            vectors: [None; 16],
            flags: Flags::default(),
            written: HashMap::new(),
            functions: Vec::new(),
        };
        first.functions.push(run.function(entry)?);
        first.registers[RDI] = Some(argument);
        // As after a call: the return address is there, and the stack is aligned before it.
        first.registers[RSP] = Some(STACK.end - (1 << 12));
        first.push(OUTSIDE);
        run.ways.push(first);
        let mut is_lost = false;
        while let Some(way) = run.ways.pop() {
            match run.follow(way) {
                End::Used => return Some(true),
                End::Over => {}
                End::Lost => is_lost = true,
            }
        }
        (!is_lost).then_some(false)
    }
}

struct Run<'r, 'q> {
    machine: &'r mut Machine,
    question: &'r Question<'q>,
    steps: u32,
    /// Ways that are still to be followed.
    ways: Vec<State>,
    seen: HashSet<u64>,
}

impl Run<'_, '_> {
    fn follow(&mut self, mut state: State) -> End {
        loop {
            self.steps += 1;
            if self.steps > MOST_STEPS || state.written.len() > MOST_WRITTEN {
                return End::Lost;
            }
            // Behind a call that never returns, there may be no code.
            if !state
                .functions
                .last()
                .is_some_and(|now| now.contains(&state.at))
            {
                return End::Over;
            }
            let Some(instruction) = self.instruction(state.at) else {
                return End::Lost;
            };
            if let Err(end) = self.step(&mut state, &instruction) {
                return end;
            }
        }
    }

    fn instruction(&mut self, at: u64) -> Option<Instruction> {
        if let Some(known) = self.machine.instructions.get(&at) {
            return *known;
        }
        let mut bytes = [0; LONGEST];
        let mut length = 0;
        for (offset, byte) in (0..).zip(&mut bytes) {
            let Some(code) = self.code(at.wrapping_add(offset)) else {
                break;
            };
            *byte = code;
            length += 1;
        }
        let one = Decoder::with_ip(64, bytes.get(..length)?, at, DecoderOptions::NONE).decode();
        let instruction = (!one.is_invalid()).then_some(one);
        if self.machine.instructions.len() >= MOST_INSTRUCTIONS {
            self.machine.instructions.clear();
        }
        self.machine.instructions.insert(at, instruction);
        instruction
    }

    /// Returns a byte of the program itself.
    fn code(&self, at: u64) -> Option<u8> {
        let code = &self.question.code;
        let is_inside = code.image.contains(&at.wrapping_sub(code.bias));
        is_inside.then(|| self.question.memory.constant_byte(at))?
    }

    /// Returns where a function that drops something lies in memory.
    fn function(&self, at: u64) -> Option<Range<u64>> {
        let code = &self.question.code;
        let end = code.functions.ends.get(&at.wrapping_sub(code.bias));
        match end {
            Some(end) => Some(at..end.wrapping_add(code.bias)),
            None => Some(at..at.checked_add(LENGTH)?),
        }
    }

    fn step(&mut self, state: &mut State, instruction: &Instruction) -> Result<(), End> {
        let mut operands = 0..instruction.op_count();
        let has_memory = operands.any(|number| instruction.op_kind(number) == OpKind::Memory);
        if has_memory && instruction.mnemonic() != Mnemonic::Lea {
            let address = Self::address(state, instruction);
            if address.is_some_and(is_marked) {
                return Err(End::Used);
            }
        }
        match instruction.flow_control() {
            FlowControl::Next => {
                self.compute(state, instruction)?;
                state.at = instruction.next_ip();
                Ok(())
            }
            FlowControl::UnconditionalBranch => {
                self.jump(state, Some(instruction.near_branch_target()))
            }
            FlowControl::IndirectBranch => {
                let target = self.operand(state, instruction, 0)?;
                self.jump(state, target)
            }
            FlowControl::ConditionalBranch => {
                let target = instruction.near_branch_target();
                match state.flags.hold(instruction.condition_code()) {
                    Some(true) => return self.jump(state, Some(target)),
                    Some(false) => {}
                    None => {
                        let mut other = state.clone();
                        other.at = target;
                        if self.seen.insert(other.fingerprint()) {
                            if self.ways.len() >= MOST_WAYS {
                                return Err(End::Lost);
                            }
                            self.ways.push(other);
                        }
                    }
                }
                state.at = instruction.next_ip();
                Ok(())
            }
            FlowControl::Call => self.call(
                state,
                Some(instruction.near_branch_target()),
                instruction.next_ip(),
            ),
            FlowControl::IndirectCall => {
                let target = self.operand(state, instruction, 0)?;
                self.call(state, target, instruction.next_ip())
            }
            FlowControl::Return => self.leave(state),
            // Code that is never reached ends so.
            FlowControl::Interrupt | FlowControl::Exception | FlowControl::XbeginXabortXend => {
                Err(End::Over)
            }
        }
    }

    fn jump(&mut self, state: &mut State, target: Option<u64>) -> Result<(), End> {
        let target = target.ok_or(End::Lost)?;
        if state
            .functions
            .last()
            .is_some_and(|now| now.contains(&target))
        {
            state.at = target;
            return Ok(());
        }
        // A call as the last thing that a function does.
        if self.enters(state, target)? {
            state.functions.pop();
            state.functions.extend(self.function(target));
            state.at = target;
            return Ok(());
        }
        state.forget_volatile();
        self.leave(state)
    }

    fn call(&mut self, state: &mut State, target: Option<u64>, next: u64) -> Result<(), End> {
        // An unknown one is skipped, but not what it is given.
        if self.enters(state, target.unwrap_or_default())?
            && let Some(target) = target
        {
            state.push(next);
            state.functions.extend(self.function(target));
            state.at = target;
            return Ok(());
        }
        state.forget_volatile();
        state.at = next;
        Ok(())
    }

    /// Returns whether a called function is entered: it drops something in the copied memory.
    fn enters(&self, state: &State, target: u64) -> Result<bool, End> {
        let arguments = [RDI, RSI].map(|register| state.registers[register]);
        if arguments.into_iter().flatten().any(is_marked) {
            return Err(End::Used);
        }
        let linked = target.wrapping_sub(self.question.code.bias);
        let functions = self.question.code.functions;
        if functions.endless.contains(&linked) {
            return Err(End::Over);
        }
        Ok(functions.ends.contains_key(&linked)
            && state.functions.len() < DEEPEST
            && state.registers[RDI].is_some_and(|value| self.may_keep(value)))
    }

    /// Returns whether what lies at an address may keep the wanted value: it is on the way, or just before it.
    fn may_keep(&self, address: u64) -> bool {
        let wanted = self.question.wanted.start;
        let is_before = (wanted.saturating_sub(LARGEST)..=wanted).contains(&address);
        is_before && self.question.memory.kept_byte(address).is_some()
            || self
                .question
                .known
                .iter()
                .any(|known| known.contains(&address))
    }

    /// Returns whether an address is one of the program's own code and variables.
    fn is_own(&self, address: u64) -> bool {
        let code = &self.question.code;
        code.image.contains(&address.wrapping_sub(code.bias))
    }

    fn leave(&mut self, state: &mut State) -> Result<(), End> {
        let stack = state.registers[RSP];
        let to = self.load(state, stack, 8)?.ok_or(End::Lost)?;
        state.registers[RSP] = stack.map(|stack| stack.wrapping_add(8));
        state.functions.pop();
        if to == u128::from(OUTSIDE) {
            return Err(End::Over);
        }
        state.at = u64::try_from(to).map_err(|_| End::Lost)?;
        Ok(())
    }

    /// Reads memory.
    fn load(&self, state: &State, address: Option<u64>, size: u64) -> Result<Option<u128>, End> {
        let Some(address) = address else {
            return Ok(None);
        };
        let question = self.question;
        let end = address.checked_add(size).ok_or(End::Lost)?;
        if size > 16 {
            return Ok(None);
        }
        let mut number = 0_u128;
        for at in (address..end).rev() {
            let byte = if let Some(written) = state.written.get(&at) {
                *written
            } else if STACK.contains(&at) {
                None
            } else if self.is_own(at) {
                question.memory.constant_byte(at)
            } else {
                let kept = question.memory.kept_byte(at);
                if kept.is_none() && question.known.iter().any(|known| known.contains(&at)) {
                    return Err(End::Lost);
                }
                kept
            };
            let Some(byte) = byte else {
                return Ok(None);
            };
            number = number << 8 | u128::from(byte);
        }
        let wanted = &question.wanted;
        let words = (address..end).step_by(8).take_while(|word| word + 8 <= end);
        for (place, word) in words.enumerate() {
            let is_wanted = wanted.contains(&word) && !state.written.contains_key(&word);
            let is_pointer = |number: &u64| (LOWEST_POINTER..MARK).contains(number);
            #[allow(clippy::cast_possible_truncation)] // the word alone
            let pointer = Some((number >> (64 * place)) as u64).filter(|_| is_wanted);
            if pointer.as_ref().is_some_and(is_pointer) {
                number |= u128::from(MARK) << (64 * place);
            }
        }
        Ok(Some(number))
    }

    fn address(state: &State, instruction: &Instruction) -> Option<u64> {
        if instruction.is_ip_rel_memory_operand() {
            return Some(instruction.ip_rel_memory_address());
        }
        if !matches!(instruction.segment_prefix(), Register::None) {
            return None;
        }
        let mut address = instruction.memory_displacement64();
        if instruction.memory_base() != Register::None {
            address = address.wrapping_add(state.register(instruction.memory_base())?);
        }
        if instruction.memory_index() != Register::None {
            let index = state.register(instruction.memory_index())?;
            address = address
                .wrapping_add(index.wrapping_mul(u64::from(instruction.memory_index_scale())));
        }
        Some(address)
    }

    /// Returns an operand of up to eight bytes.
    fn operand(
        &self,
        state: &State,
        instruction: &Instruction,
        number: u32,
    ) -> Result<Option<u64>, End> {
        Ok(match instruction.op_kind(number) {
            OpKind::Register => state.register(instruction.op_register(number)),
            OpKind::Memory => {
                let size = instruction.memory_size().size() as u64;
                let loaded = self.load(state, Self::address(state, instruction), size)?;
                loaded.and_then(|loaded| u64::try_from(loaded).ok())
            }
            OpKind::NearBranch64 => Some(instruction.near_branch_target()),
            OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => Some(instruction.immediate(number)),
            _ => None,
        })
    }

    /// Sets the first operand, or another.
    fn set(state: &mut State, instruction: &Instruction, number: u32, value: Option<u64>) {
        match instruction.op_kind(number) {
            OpKind::Register => state.set(instruction.op_register(number), value),
            OpKind::Memory => {
                let size = instruction.memory_size().size() as u64;
                let address = Self::address(state, instruction);
                state.store(address, size, value.map(u128::from));
            }
            _ => {}
        }
    }

    fn size(instruction: &Instruction) -> u32 {
        let size = match instruction.op_kind(0) {
            OpKind::Register => instruction.op_register(0).size(),
            _ => instruction.memory_size().size(),
        };
        u32::try_from(size.min(8)).unwrap_or(8)
    }

    #[allow(clippy::too_many_lines)] // one arm for each kind of instruction
    fn compute(&mut self, state: &mut State, instruction: &Instruction) -> Result<(), End> {
        let size = Self::size(instruction);
        match instruction.mnemonic() {
            Mnemonic::Nop | Mnemonic::Endbr64 => {}
            Mnemonic::Mov | Mnemonic::Movzx => {
                let value = self.operand(state, instruction, 1)?;
                Self::set(state, instruction, 0, value);
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let from = match instruction.op_kind(1) {
                    OpKind::Register => instruction.op_register(1).size(),
                    _ => instruction.memory_size().size(),
                };
                let value = self.operand(state, instruction, 1)?;
                let shift = 64 - 8 * u32::try_from(from).unwrap_or(8).min(8);
                let value =
                    value.map(|value| ((value << shift).cast_signed() >> shift).cast_unsigned());
                Self::set(state, instruction, 0, value);
            }
            Mnemonic::Lea => {
                let address = Self::address(state, instruction);
                Self::set(state, instruction, 0, address);
            }
            Mnemonic::Push => {
                let value = self.operand(state, instruction, 0)?;
                let stack = state.registers[RSP].map(|stack| stack.wrapping_sub(8));
                state.registers[RSP] = stack;
                state.store(stack, 8, value.map(u128::from));
            }
            Mnemonic::Pop => {
                let stack = state.registers[RSP];
                let value = self.load(state, stack, 8)?;
                state.registers[RSP] = stack.map(|stack| stack.wrapping_add(8));
                let value = value.and_then(|value| u64::try_from(value).ok());
                Self::set(state, instruction, 0, value);
            }
            Mnemonic::Add
            | Mnemonic::Sub
            | Mnemonic::Cmp
            | Mnemonic::And
            | Mnemonic::Test
            | Mnemonic::Or
            | Mnemonic::Xor
            | Mnemonic::Inc
            | Mnemonic::Dec => self.arithmetic(state, instruction, size)?,
            Mnemonic::Shl | Mnemonic::Shr => {
                let (value, by) = (
                    self.operand(state, instruction, 0)?,
                    self.operand(state, instruction, 1)?,
                );
                let result = value.zip(by).map(|(value, by)| {
                    let by = u32::try_from(by & if size == 8 { 63 } else { 31 }).unwrap_or(0);
                    if instruction.mnemonic() == Mnemonic::Shl {
                        masked(value << by, size)
                    } else {
                        masked(value, size) >> by
                    }
                });
                state.flags = Flags {
                    zero: result.map(|result| result == 0),
                    sign: result.map(|result| is_negative(result, size)),
                    ..Flags::default()
                };
                Self::set(state, instruction, 0, result);
            }
            Mnemonic::Xchg => {
                let (first, second) = (
                    self.operand(state, instruction, 0)?,
                    self.operand(state, instruction, 1)?,
                );
                Self::set(state, instruction, 0, second);
                Self::set(state, instruction, 1, first);
            }
            Mnemonic::Movups
            | Mnemonic::Movaps
            | Mnemonic::Movdqu
            | Mnemonic::Movdqa
            | Mnemonic::Movupd
            | Mnemonic::Movapd => self.vector(state, instruction)?,
            Mnemonic::Xorps | Mnemonic::Pxor
                if instruction.op_kind(1) == OpKind::Register
                    && instruction.op_register(0) == instruction.op_register(1) =>
            {
                state.set_vector(instruction.op_register(0), Some(0));
            }
            _ => self.other(state, instruction)?,
        }
        Ok(())
    }

    fn arithmetic(
        &mut self,
        state: &mut State,
        instruction: &Instruction,
        size: u32,
    ) -> Result<(), End> {
        let mnemonic = instruction.mnemonic();
        let first = self.operand(state, instruction, 0)?;
        let is_one = matches!(mnemonic, Mnemonic::Inc | Mnemonic::Dec);
        let is_own = !is_one
            && instruction.op_kind(1) == OpKind::Register
            && instruction.op_kind(0) == OpKind::Register
            && instruction.op_register(0) == instruction.op_register(1);
        let both = if is_own && matches!(mnemonic, Mnemonic::Xor | Mnemonic::Sub) {
            // Zero, whatever it was.
            Some((0, 0))
        } else if is_one {
            first.map(|first| (first, 1))
        } else {
            first.zip(self.operand(state, instruction, 1)?)
        };
        let both = both.map(|(first, second)| (masked(first, size), masked(second, size)));
        let (is_sum, is_difference) = (
            matches!(mnemonic, Mnemonic::Add | Mnemonic::Inc),
            matches!(mnemonic, Mnemonic::Sub | Mnemonic::Cmp | Mnemonic::Dec),
        );
        let result = both.map(|(first, second)| {
            let result = match mnemonic {
                _ if is_sum => first.wrapping_add(second),
                _ if is_difference => first.wrapping_sub(second),
                Mnemonic::Or => first | second,
                Mnemonic::Xor => first ^ second,
                _ => first & second,
            };
            (first, second, masked(result, size))
        });
        let carry = state.flags.carry;
        state.flags = match result {
            Some((first, second, result)) => Flags {
                zero: Some(result == 0),
                sign: Some(is_negative(result, size)),
                carry: Some(if is_sum {
                    result < first
                } else {
                    is_difference && first < second
                }),
                overflow: Some(if is_sum {
                    is_negative(!(first ^ second) & (first ^ result), size)
                } else {
                    is_difference && is_negative((first ^ second) & (first ^ result), size)
                }),
            },
            // A count that was not copied: others hold what it counts, too.
            None if instruction.has_lock_prefix() && (is_sum || is_difference) => Flags {
                zero: Some(false),
                sign: Some(false),
                ..Flags::default()
            },
            None => Flags::default(),
        };
        if is_one {
            state.flags.carry = carry;
        }
        if !matches!(mnemonic, Mnemonic::Cmp | Mnemonic::Test) {
            let result = result.map(|(_, _, result)| result);
            Self::set(state, instruction, 0, result);
        }
        Ok(())
    }

    fn vector(&mut self, state: &mut State, instruction: &Instruction) -> Result<(), End> {
        let value = match instruction.op_kind(1) {
            OpKind::Register => state.vector(instruction.op_register(1)),
            _ => self.load(state, Self::address(state, instruction), 16)?,
        };
        match instruction.op_kind(0) {
            OpKind::Register => state.set_vector(instruction.op_register(0), value),
            _ => state.store(Self::address(state, instruction), 16, value),
        }
        Ok(())
    }

    /// Does what every instruction does: reads memory, and makes what it writes unknown.
    fn other(&mut self, state: &mut State, instruction: &Instruction) -> Result<(), End> {
        let holds = state.flags.hold(instruction.condition_code());
        let name = instruction.mnemonic();
        let info = self.machine.info.info(instruction);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for used in info.used_memory() {
            let address = used.virtual_address(0, |register, _, _| state.register(register));
            let place = (
                address.filter(|_| !matches!(used.segment(), Register::FS | Register::GS)),
                used.memory_size().size() as u64,
            );
            match used.access() {
                OpAccess::Read | OpAccess::CondRead => reads.push(place),
                OpAccess::Write | OpAccess::CondWrite => writes.push(place),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                    reads.push(place);
                    writes.push(place);
                }
                OpAccess::None | OpAccess::NoMemAccess => {}
            }
        }
        let changed: Vec<Register> = info
            .used_registers()
            .iter()
            .filter(|used| {
                !matches!(
                    used.access(),
                    OpAccess::Read | OpAccess::CondRead | OpAccess::None
                )
            })
            .map(iced_x86::UsedRegister::register)
            .collect();
        for (address, size) in reads {
            self.load(state, address, size)?;
        }
        let is_move = is_conditional_move(name);
        let moved = if is_move {
            self.operand(state, instruction, 1)?
        } else {
            None
        };
        for (address, size) in writes {
            state.store(address, size, None);
        }
        match holds {
            // A conditional move.
            Some(true) if is_move => {
                Self::set(state, instruction, 0, moved);
                return Ok(());
            }
            Some(false) if is_move => return Ok(()),
            // A byte that says whether a condition holds.
            Some(holds) if instruction.op_count() == 1 => {
                Self::set(state, instruction, 0, Some(u64::from(holds)));
                return Ok(());
            }
            _ => {}
        }
        for register in changed {
            state.set(register.full_register(), None);
            state.set_vector(register, None);
        }
        if instruction.rflags_modified() != 0 {
            state.flags = Flags::default();
        }
        Ok(())
    }
}

/// Returns whether an instruction is a conditional move.
fn is_conditional_move(name: Mnemonic) -> bool {
    matches!(
        name,
        Mnemonic::Cmova
            | Mnemonic::Cmovae
            | Mnemonic::Cmovb
            | Mnemonic::Cmovbe
            | Mnemonic::Cmove
            | Mnemonic::Cmovg
            | Mnemonic::Cmovge
            | Mnemonic::Cmovl
            | Mnemonic::Cmovle
            | Mnemonic::Cmovne
            | Mnemonic::Cmovno
            | Mnemonic::Cmovnp
            | Mnemonic::Cmovns
            | Mnemonic::Cmovo
            | Mnemonic::Cmovp
            | Mnemonic::Cmovs
    )
}

impl State {
    fn register(&self, register: Register) -> Option<u64> {
        if !register.is_gpr() || is_high(register) {
            return None;
        }
        let whole = *self.registers.get(register.full_register().number())?;
        let size = u32::try_from(register.size()).ok()?;
        whole.map(|whole| masked(whole, size))
    }

    fn set(&mut self, register: Register, value: Option<u64>) {
        if !register.is_gpr() {
            return;
        }
        let Some(whole) = self.registers.get_mut(register.full_register().number()) else {
            return;
        };
        *whole = match register.size() {
            8 => value,
            // The upper half becomes zero.
            4 => value.map(|value| masked(value, 4)),
            size if !is_high(register) => {
                let size = u32::try_from(size).unwrap_or(1);
                let keep = !masked(u64::MAX, size);
                whole
                    .zip(value)
                    .map(|(whole, value)| whole & keep | masked(value, size))
            }
            _ => None,
        };
    }

    fn vector(&self, register: Register) -> Option<u128> {
        let number = register.is_xmm().then(|| register.number())?;
        *self.vectors.get(number)?
    }

    fn set_vector(&mut self, register: Register, value: Option<u128>) {
        if register.is_vector_register()
            && let Some(vector) = self.vectors.get_mut(register.number())
        {
            *vector = value;
        }
    }

    fn store(&mut self, address: Option<u64>, size: u64, value: Option<u128>) {
        // A write to an unknown address is taken for one that does not matter here.
        let Some(address) = address.filter(|_| size <= 64) else {
            return;
        };
        let mut rest = value.filter(|_| size <= 16);
        for offset in 0..size {
            let byte = rest.map(|rest| rest.to_le_bytes()[0]);
            self.written.insert(address.wrapping_add(offset), byte);
            rest = rest.map(|rest| rest >> 8);
        }
    }

    fn push(&mut self, value: u64) {
        let stack = self.registers[RSP].map(|stack| stack.wrapping_sub(8));
        self.registers[RSP] = stack;
        self.store(stack, 8, Some(u128::from(value)));
    }

    fn forget_volatile(&mut self) {
        for register in VOLATILE {
            self.registers[register] = None;
        }
        self.vectors = [None; 16];
        self.flags = Flags::default();
    }

    /// Returns a number for the place and the registers: a loop whose end is unknown is followed once.
    fn fingerprint(&self) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one((
            self.at,
            self.registers,
            self.functions.len(),
        ))
    }
}

impl Flags {
    /// Returns whether a condition holds.
    fn hold(self, condition: ConditionCode) -> Option<bool> {
        let below_or_equal = || match (self.carry, self.zero) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        };
        let less = || Some(self.sign? != self.overflow?);
        let less_or_equal = || match (self.zero, less()) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        };
        let not = |condition: Option<bool>| condition.map(|holds| !holds);
        match condition {
            ConditionCode::o => self.overflow,
            ConditionCode::no => not(self.overflow),
            ConditionCode::b => self.carry,
            ConditionCode::ae => not(self.carry),
            ConditionCode::e => self.zero,
            ConditionCode::ne => not(self.zero),
            ConditionCode::be => below_or_equal(),
            ConditionCode::a => not(below_or_equal()),
            ConditionCode::s => self.sign,
            ConditionCode::ns => not(self.sign),
            ConditionCode::l => less(),
            ConditionCode::ge => not(less()),
            ConditionCode::le => less_or_equal(),
            ConditionCode::g => not(less_or_equal()),
            ConditionCode::None | ConditionCode::p | ConditionCode::np => None,
        }
    }
}

/// Returns whether a number was computed from a pointer in the wanted memory.
fn is_marked(number: u64) -> bool {
    number & !(MARK - 1) == MARK
}

/// Returns whether it is one of the four registers that are the second byte of another.
fn is_high(register: Register) -> bool {
    matches!(
        register,
        Register::AH | Register::BH | Register::CH | Register::DH
    )
}

/// Returns the lowest bytes of a number.
fn masked(number: u64, bytes: u32) -> u64 {
    if bytes >= 8 {
        number
    } else {
        number & ((1 << (8 * bytes)) - 1)
    }
}

fn is_negative(number: u64, bytes: u32) -> bool {
    number >> (8 * bytes.min(8) - 1) & 1 == 1
}
